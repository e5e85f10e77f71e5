"""Placing replicas, and the partitions that the coming or going of a broker touches."""

from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.controller_under_test import started_cluster

from kvorum.controller.api import PIECE_RECORDS, gather, records_of
from kvorum.controller.broker_changes import (
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
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerSettings
from kvorum.controller.striped_replica_placer import Racks, UsableBroker, usable_brokers
from kvorum.metadata.api import RequestError
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
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


def place(
    brokers: list[UsableBroker], partitions: int, replicas: int, seed: int = 1
) -> list[list[int]]:
    return Racks(brokers).place(
        partition_count=partitions, replication_factor=replicas, random=Random(seed)
    )


CLUSTERS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
).map(
    lambda rows: [
        UsableBroker(index, rack, is_fenced and index > 0)
        for index, (rack, is_fenced) in enumerate(rows)
    ]
)


@given(CLUSTERS, st.integers(1, 40), st.integers(1, 5), st.integers())
def test_replicas_are_distinct_and_the_first_one_is_unfenced(
    brokers: list[UsableBroker], partitions: int, replicas: int, seed: int
) -> None:
    fenced = {broker.id for broker in brokers if broker.is_fenced}
    replicas = min(replicas, len(brokers))
    placed = place(brokers, partitions, replicas, seed)
    assert len(placed) == partitions
    for row in placed:
        assert len(row) == len(set(row)) == replicas
        assert row[0] not in fenced


@given(st.integers(1, 8), st.integers(1, 6), st.integers(1, 5), st.integers())
def test_leaders_and_replicas_are_even_over_equal_brokers(
    count: int, rounds: int, replicas: int, seed: int
) -> None:
    brokers = [UsableBroker(index, None, is_fenced=False) for index in range(count)]
    replicas = min(replicas, count)
    placed = place(brokers, count * rounds, replicas, seed)
    assert set(Counter(row[0] for row in placed).values()) == {rounds}
    assert set(Counter(broker for row in placed for broker in row).values()) == {rounds * replicas}


@given(st.integers(1, 4), st.integers(2, 4), st.integers())
def test_each_partition_is_in_as_many_racks_as_it_can_be(
    per_rack: int, racks: int, seed: int
) -> None:
    brokers = [
        UsableBroker(rack * 10 + index, f"rack-{rack}", is_fenced=False)
        for rack in range(racks)
        for index in range(per_rack)
    ]
    for row in place(brokers, 30, racks, seed):
        assert len({broker // 10 for broker in row}) == racks


def test_fenced_brokers_of_a_rack_come_last() -> None:
    brokers = [UsableBroker(index, None, is_fenced=index == 2) for index in range(3)]
    for row in place(brokers, 20, 2):
        assert 2 not in row


LIVE = UsableBroker(1, None, is_fenced=False)


NO_BROKER = "All brokers are currently fenced, or have all their log directories cordoned."


@pytest.mark.parametrize(
    ("brokers", "replicas", "message"),
    [
        ([LIVE], 0, "Invalid replication factor 0: the replication factor must be positive."),
        ([], 1, NO_BROKER),
        ([UsableBroker(1, None, is_fenced=True)], 1, NO_BROKER),
        (
            [LIVE],
            2,
            (
                "The target replication factor of 2 cannot be reached because only 1 broker(s) are "
                "registered or some brokers have all their log directories cordoned."
            ),
        ),
    ],
)
def test_what_cannot_be_placed(brokers: list[UsableBroker], replicas: int, message: str) -> None:
    with pytest.raises(RequestError) as caught:
        place(brokers, 1, replicas)
    assert caught.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert caught.value.message == message


def test_brokers_that_shut_down_or_are_cordoned_get_nothing_new() -> None:
    controller = started_cluster(brokers=4)
    brokers = controller.image.cluster.brokers
    cordoned = BrokerRegistrationChangeRecord(
        2, brokers[2].epoch, cordoned_log_dirs=list(brokers[2].directories)
    )
    fenced = BrokerRegistrationChangeRecord(4, brokers[4].epoch, fenced=1)
    controller.commit(((cordoned, 3), (fenced, 0)))
    controller.sessions.begin_controlled_shutdown(3, 100)
    assert usable_brokers(controller.image.cluster, controller.sessions) == [
        UsableBroker(1, None, is_fenced=False),
        UsableBroker(4, None, is_fenced=True),
    ]


def test_a_broker_that_has_shut_down_may_get_replicas_for_its_return() -> None:
    controller = started_cluster(brokers=2)
    controller.create_topic("t", partitions=2, replicas=2)
    for _ in range(2):
        controller.heartbeat(1)
        controller.heartbeat(2, want_shut_down=True)
    assert controller.heartbeat(2, want_shut_down=True).should_shut_down
    stopped = controller.image.cluster.brokers[2]
    assert (stopped.is_fenced, stopped.is_in_controlled_shutdown) == (True, True)
    assert usable_brokers(controller.image.cluster, controller.sessions) == [
        UsableBroker(1, None, is_fenced=False),
        UsableBroker(2, None, is_fenced=True),
    ]


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
        assert [(one[0].name, one[1]) for one in found if one is not None] == scanned(image, match)


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
