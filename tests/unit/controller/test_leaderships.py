"""Which partitions a broker's coming or going touches, against looking at every one of them."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.controller.api import PIECE_RECORDS, gather, records_of
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.leader_and_isr_updates import (
    SEARCHED_PER_PIECE,
    PartitionOfTopic,
    Search,
    leader_and_isr_changes,
    leads_any,
    partitions_in_directory,
    partitions_with_elr_member,
    partitions_with_isr_member,
    partitions_without_leader,
    partitions_without_preferred_leader,
)
from kvorum.controller.settings import ControllerSettings
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message

BROKERS = (1, 2, 3, 4)
SETTINGS = ControllerSettings(node_id=1, cluster_id="c")
seeds = st.integers(0, 2**32)

Found = list[tuple[str, int]]
Matches = Callable[[PartitionRegistration], bool]


def directory(broker_id: int) -> bytes:
    return bytes([broker_id]) * 16


def cluster(random: Random) -> MetadataImage:
    """Return an image of a few topics, many of whose partitions are alike."""
    messages: list[Message] = [FeatureLevelRecord("metadata.version", 29)]
    if random.random() < 0.5:
        messages.append(FeatureLevelRecord("eligible.leader.replicas.version", 1))
    messages += [
        RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=broker_id,
            fenced=random.random() < 0.3,
            log_dirs=[directory(broker_id)],
        )
        for broker_id in BROKERS
    ]
    for name in ["d", "a", "c", "b"]:
        messages += topic(random, name)
    return MetadataImage().apply_all(
        (message, type(message).MAX_VERSION, offset) for offset, message in enumerate(messages)
    )


def topic(random: Random, name: str) -> list[Message]:
    topic_id = random.randbytes(16)
    messages: list[Message] = [TopicRecord(name, topic_id)]
    for key, values in (
        ("unclean.leader.election.enable", ("true", "false")),
        ("min.insync.replicas", ("1", "2", "3")),
    ):
        if random.random() < 0.4:
            messages.append(ConfigRecord(ResourceType.TOPIC, name, key, random.choice(values)))
    for index in range(random.randrange(1, 6)):
        replicas = random.choice(([1, 2, 3], [2, 1, 4], [3, 4, 1]))
        isr = [replica for replica in replicas if random.random() < 0.6]
        messages.append(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=replicas,
                isr=isr,
                leader=random.choice([*isr, -1]),
                leader_epoch=0,
                partition_epoch=0,
                directories=[directory(replica) for replica in replicas],
                eligible_leader_replicas=[replica for replica in replicas if replica not in isr],
            )
        )
    return messages


def scanned(image: MetadataImage, matches: Matches) -> Found:
    return [
        (topic.name, index)
        for topic in image.topics.sorted_topics()
        for index, partition in topic.partitions.in_order()
        if matches(partition)
    ]


@given(seed=seeds, broker_id=st.sampled_from((*BROKERS, 9)))
def test_what_is_found_is_what_a_full_scan_finds_by_name_and_index(
    seed: int, broker_id: int
) -> None:
    image = cluster(Random(seed))
    led = scanned(image, lambda partition: partition.leader == broker_id)
    assert leads_any(image, broker_id) is bool(led)
    matches: dict[Matches, Search] = {
        lambda of: broker_id in of.isr: partitions_with_isr_member(image, broker_id),
        lambda of: broker_id in of.elr: partitions_with_elr_member(image, broker_id),
        lambda of: of.leader == -1: partitions_without_leader(image),
        lambda of: of.leader != of.replicas[0]: partitions_without_preferred_leader(image),
        lambda of: directory(broker_id) in of.directories: partitions_in_directory(
            image, directory(broker_id)
        ),
    }
    for match, found in matches.items():
        names = [(one[0].name, one[1]) for one in found if one is not None]
        assert names == scanned(image, match)


@pytest.mark.parametrize("role", ["removed", "added", "unclean"])
@given(seed=seeds, broker_id=st.sampled_from(BROKERS))
def test_deciding_once_for_partitions_alike_is_deciding_for_each(
    role: str, seed: int, broker_id: int
) -> None:
    image = cluster(Random(seed))
    rules = ClusterRules(image, SETTINGS)
    everything = [
        (topic, index)
        for topic in image.topics.sorted_topics()
        for index, _ in topic.partitions.in_order()
    ]

    def changes(partitions: list[PartitionOfTopic]) -> list[RecordAndVersion]:
        match role:
            case "removed":
                steps = leader_and_isr_changes(rules, partitions, broker_to_remove=broker_id)
            case "added":
                steps = leader_and_isr_changes(rules, partitions, broker_to_add=broker_id)
            case _:
                steps = leader_and_isr_changes(
                    rules, partitions, broker_with_unclean_shutdown=broker_id
                )
        return list(records_of(steps))

    one_by_one = [change for partition in everything for change in changes([partition])]
    assert changes(everything) == one_by_one


def test_a_long_search_has_places_to_stop_and_so_has_what_is_decided_on_its_finds() -> None:
    messages: list[Message] = [FeatureLevelRecord("metadata.version", 29)]
    for number in range(2 * SEARCHED_PER_PIECE // 10):
        topic_id = number.to_bytes(16)
        messages.append(TopicRecord(f"t{number}", topic_id))
        messages += [
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=[1, 2],
                isr=[1, 2],
                leader=1,
                leader_epoch=0,
                partition_epoch=0,
            )
            for index in range(10)
        ]
    image = MetadataImage().apply_all(
        (message, type(message).MAX_VERSION, offset) for offset, message in enumerate(messages)
    )
    search = list(partitions_with_isr_member(image, 1))
    assert search.count(None) == 2
    assert len(search) == 2 * SEARCHED_PER_PIECE + 2
    steps = leader_and_isr_changes(ClusterRules(image, SETTINGS), search, broker_to_remove=1)
    records: list[RecordAndVersion] = []
    stops = sum(1 for _ in gather(records, steps))
    assert len(records) == 2 * SEARCHED_PER_PIECE
    assert stops == 2 + 2 * SEARCHED_PER_PIECE // PIECE_RECORDS
