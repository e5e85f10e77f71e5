"""Folding records: each kind's effect, contradictions, transactions, and what differs then."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.metadata.errors import ReplayError, UnwritableMetadataError
from kvorum.metadata.features import FeaturesImage
from kvorum.metadata.image import ImageDelta, MapDelta, MetadataImage, map_delta
from kvorum.metadata.image_records import image_records
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import RECOVERING, PartitionRegistration
from kvorum.metadata.replay import FOLDS
from kvorum.wire.apis import METADATA_RECORDS
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.messages.zk_migration_state_record import ZkMigrationStateRecord
from kvorum.wire.primitives import Message

TOPIC = TopicRecord(name="t", topic_id=b"t" * 16)
PARTITION = PartitionRecord(
    partition_id=0,
    topic_id=b"t" * 16,
    replicas=[1, 2],
    isr=[1, 2],
    leader=1,
    leader_epoch=0,
    partition_epoch=0,
    directories=[b"1" * 16, b"2" * 16],
)
BROKER = RegisterBrokerRecord(broker_id=1, broker_epoch=5, log_dirs=[b"1" * 16])
LEVEL = FeatureLevelRecord(name="metadata.version", feature_level=30)
Key = TypeVar("Key")
Value = TypeVar("Value")
MAPS = st.dictionaries(st.integers(0, 5), st.integers(0, 2))
ID, OTHER_ID = b"t" * 16, b"u" * 16
START = (
    FeatureLevelRecord("metadata.version", 30),
    RegisterBrokerRecord(broker_id=1, broker_epoch=1, incarnation_id=ID),
    TopicRecord("t", ID),
    PartitionRecord(0, ID, replicas=[1], isr=[1], leader=1, leader_epoch=0, partition_epoch=0),
    ConfigRecord(2, "t", "retention.ms", "1"),
)


def fold(*messages: Message, onto: MetadataImage | None = None) -> MetadataImage:
    image = onto or MetadataImage()
    return image.apply_all(
        (message, type(message).MAX_VERSION, image.last_offset + 1 + step)
        for step, message in enumerate(messages)
    )


def test_every_kind_of_metadata_record_has_its_effect_written_down() -> None:
    assert FOLDS.keys() == METADATA_RECORDS.keys()


def test_something_else_is_not_folded() -> None:
    with pytest.raises(ReplayError, match="LeaderChangeMessage is not a record"):
        fold(LeaderChangeMessage())


def change(**fields: Any) -> PartitionChangeRecord:
    return PartitionChangeRecord(partition_id=0, topic_id=b"t" * 16, **fields)


def partition(image: MetadataImage) -> PartitionRegistration:
    return image.topics.by_id[b"t" * 16].partitions[0]


CONTRADICTIONS = [
    ("topic t exists already", (TOPIC, TopicRecord("t", b"u" * 16))),
    ("no topic with id", (RemoveTopicRecord(b"t" * 16),)),
    ("no topic with id", (PARTITION,)),
    ("has no partition 0", (TOPIC, change(isr=[1]))),
    ("is given 1 directories", (TOPIC, PARTITION, change(directories=[b"3" * 16]))),
    ("2 is not a leader recovery", (TOPIC, PARTITION, change(leader_recovery_state=2))),
    ("broker 1, which is not registered", (UnregisterBrokerRecord(1, 5),)),
    ("current epoch is 5", (BROKER, UnregisterBrokerRecord(1, 6))),
    ("controller 3, which is not registered", (UnregisterControllerRecord(3),)),
    ("current epoch is 5", (BROKER, FenceBrokerRecord(1, 6))),
    ("for Fenced", (BROKER, BrokerRegistrationChangeRecord(1, 5, fenced=2))),
    (
        "InControlledShutdown",
        (BROKER, BrokerRegistrationChangeRecord(1, 5, in_controlled_shutdown=-1)),
    ),
    ("to level 35", (FeatureLevelRecord("metadata.version", 35),)),
    ("to level 0", (FeatureLevelRecord("metadata.version", 0),)),
    ("to level 2", (FeatureLevelRecord("group.version", 2),)),
    ("feature new.version", (FeatureLevelRecord("new.version", 1),)),
    ("no access control entry", (RemoveAccessControlEntryRecord(b"a" * 16),)),
    ("no topic x to clear", (ClearElrRecord("x"),)),
    ("still open", (BeginTransactionRecord(), BeginTransactionRecord())),
    ("none is open", (EndTransactionRecord(),)),
    ("none is open", (AbortTransactionRecord(),)),
]


@pytest.mark.parametrize(("why", "messages"), CONTRADICTIONS)
def test_records_that_contradict_the_state_are_fatal(
    why: str, messages: tuple[Message, ...]
) -> None:
    with pytest.raises(ReplayError, match=why):
        fold(*messages)


def test_a_leader_that_is_named_gets_a_new_epoch_even_if_it_is_the_same() -> None:
    image = fold(TOPIC, PARTITION, change(leader=1))
    assert (partition(image).leader, partition(image).leader_epoch) == (1, 1)
    assert partition(image).partition_epoch == 1
    image = fold(change(isr=[1]), onto=image)
    assert (partition(image).isr, partition(image).leader_epoch) == ((1,), 1)
    assert partition(image).partition_epoch == 2


def test_unset_fields_stay_and_empty_ones_clear() -> None:
    image = fold(TOPIC, PARTITION, change(adding_replicas=[3], eligible_leader_replicas=[2]))
    image = fold(change(leader_recovery_state=RECOVERING), onto=image)
    assert partition(image).adding_replicas == (3,)
    assert partition(image).elr == (2,)
    assert partition(image).leader_recovery_state == RECOVERING
    image = fold(change(adding_replicas=[], eligible_leader_replicas=[]), onto=image)
    assert (partition(image).adding_replicas, partition(image).elr) == ((), ())


def test_partitions_without_directories_are_migrating() -> None:
    image = fold(TOPIC, PartitionRecord(partition_id=0, topic_id=b"t" * 16, replicas=[1, 2]))
    assert partition(image).directories == (bytes(16), bytes(16))


@pytest.mark.parametrize("name", ["t", ""])
def test_clearing_the_elr_raises_the_epoch_of_those_that_had_one(name: str) -> None:
    other = PartitionRecord(partition_id=1, topic_id=b"t" * 16, replicas=[1], partition_epoch=0)
    image = fold(TOPIC, PARTITION, other, change(eligible_leader_replicas=[2]))
    image = fold(ClearElrRecord(name), onto=image)
    assert (partition(image).elr, partition(image).partition_epoch) == ((), 2)
    assert image.topics.by_id[b"t" * 16].partitions[1].partition_epoch == 0


def test_a_removed_topic_takes_its_configuration_along() -> None:
    image = fold(TOPIC, PARTITION, ConfigRecord(2, "t", "retention.ms", "1"))
    image = fold(RemoveTopicRecord(b"t" * 16), onto=image)
    assert len(image.topics.ids) == len(image.topics.by_id) == 0
    assert len(image.configs.resources) == 0


def test_brokers_come_change_and_go() -> None:
    image = fold(BROKER)
    assert image.cluster.brokers[1].is_fenced
    assert image.cluster.brokers[1].registered_at_offset == 0
    image = fold(UnfenceBrokerRecord(1, 5), onto=image)
    assert image.cluster.is_broker_active(1)
    image = fold(
        BrokerRegistrationChangeRecord(
            1, 5, in_controlled_shutdown=1, log_dirs=[b"2" * 16], cordoned_log_dirs=[]
        ),
        onto=image,
    )
    broker = image.cluster.brokers[1]
    assert (broker.is_fenced, broker.is_in_controlled_shutdown) == (False, True)
    assert (broker.directories, broker.cordoned_directories) == ((b"2" * 16,), ())
    image = fold(FenceBrokerRecord(1, 5), UnregisterBrokerRecord(1, 5), onto=image)
    assert len(image.cluster.brokers) == 0


def test_other_records() -> None:
    entity = [ClientQuotaRecord.EntityData("user", None), ClientQuotaRecord.EntityData("ip", "x")]
    image = fold(
        RegisterControllerRecord(controller_id=3),
        ClientQuotaRecord(entity, "k", 1.5, False),
        AccessControlEntryRecord(id=b"a" * 16, principal="User:a"),
        UserScramCredentialRecord("u", 1, b"s", b"k", b"v", 4096),
        DelegationTokenRecord(owner="User:a", token_id="id"),
        ProducerIdsRecord(1, 2, 3000),
        NoOpRecord(),
        ZkMigrationStateRecord(0),
    )
    assert list(image.cluster.controllers) == [3]
    assert dict(image.client_quotas.entities[("ip", "x"), ("user", None)].items()) == {"k": 1.5}
    assert image.acls.entries[b"a" * 16].principal == "User:a"
    assert image.scram.credentials[1, "u"].iterations == 4096
    assert image.delegation_tokens.tokens["id"].owner == "User:a"
    assert image.next_producer_id == 3000
    assert image.last_offset == 7
    image = fold(
        ClientQuotaRecord(entity, "k", 0, True),
        RemoveAccessControlEntryRecord(b"a" * 16),
        RemoveUserScramCredentialRecord("u", 1),
        RemoveDelegationTokenRecord("id"),
        onto=image,
    )
    assert len(image.client_quotas.entities) == len(image.acls.entries) == 0
    assert len(image.scram.credentials) == len(image.delegation_tokens.tokens) == 0


def test_secrets_do_not_show_when_an_image_is_printed() -> None:
    image = fold(UserScramCredentialRecord("u", 1, b"salty", b"stored", b"server", 4096))
    assert not any(secret in repr(image) for secret in ("salty", "stored", "server"))


def test_a_feature_at_level_0_is_off_and_kraft_version_is_not_kept() -> None:
    image = fold(LEVEL, FeatureLevelRecord("group.version", 1))
    assert image.features.all_levels() == {"metadata.version": 30, "group.version": 1}
    image = fold(
        FeatureLevelRecord("group.version", 0), FeatureLevelRecord("kraft.version", 1), onto=image
    )
    assert image.features.all_levels() == {"metadata.version": 30}
    assert image.metadata_version is MetadataVersion.V4_3_IV0


def test_an_image_without_a_level_says_so() -> None:
    with pytest.raises(ReplayError, match=r"no metadata\.version record"):
        _ = MetadataImage().metadata_version


def test_a_transaction_is_seen_whole_or_not_at_all() -> None:
    before = fold(LEVEL)
    inside = fold(BeginTransactionRecord(name="x"), TOPIC, onto=before)
    assert "t" in inside.topics.ids
    assert inside.published == before
    assert inside.transaction is not None
    assert (inside.transaction.name, inside.transaction.begin_offset) == ("x", 1)
    ended = fold(EndTransactionRecord(), onto=inside)
    assert ended.published is ended
    assert "t" in ended.topics.ids
    aborted = fold(AbortTransactionRecord(reason="why"), onto=inside)
    assert aborted.published is aborted
    assert "t" not in aborted.topics.ids
    assert (aborted.features, aborted.last_offset) == (before.features, 3)


def test_an_earlier_image_is_not_touched_and_parts_are_shared() -> None:
    first = fold(LEVEL, TOPIC, PARTITION)
    second = fold(change(isr=[1]), onto=first)
    assert partition(first).isr == (1, 2)
    assert second.configs is first.configs
    assert second.cluster is first.cluster
    assert fold(BROKER, onto=second).topics is second.topics


@pytest.mark.parametrize(
    ("level", "message", "what"),
    [
        (7, BROKER, "online log directories"),
        (29, BROKER, "cordoned log directories"),
        (14, RegisterControllerRecord(controller_id=1), "controller registration"),
        (10, UserScramCredentialRecord("u", 1, b"s", b"k", b"v", 4096), "SCRAM"),
        (13, DelegationTokenRecord(token_id="x"), "delegation tokens"),
    ],
)
def test_a_snapshot_never_loses_anything_silently(level: int, message: Message, what: str) -> None:
    messages = [FeatureLevelRecord("metadata.version", level), message]
    if what.startswith("cordoned"):
        messages.append(BrokerRegistrationChangeRecord(1, 5, cordoned_log_dirs=[]))
    with pytest.raises(UnwritableMetadataError, match=what):
        list(image_records(fold(*messages)))


def test_no_snapshot_inside_a_transaction() -> None:
    with pytest.raises(ReplayError, match="inside a metadata transaction"):
        list(image_records(fold(LEVEL, BeginTransactionRecord())))


def test_the_records_of_an_image_fold_into_it_again() -> None:
    image = fold(LEVEL, TOPIC, PARTITION, BROKER, ConfigRecord(4, "", "min.insync.replicas", "1"))
    again = MetadataImage().apply_all(
        (message, version, image.last_offset) for message, version in image_records(image)
    )
    assert again == image


STEPS = st.lists(
    st.sampled_from(
        [
            TOPIC,
            PARTITION,
            change(isr=[1]),
            change(leader=2),
            change(eligible_leader_replicas=[1]),
            ClearElrRecord("t"),
            ClearElrRecord(""),
            RemoveTopicRecord(b"t" * 16),
            ConfigRecord(2, "t", "retention.ms", "1"),
            ConfigRecord(2, "t", "retention.ms", None),
            BeginTransactionRecord(),
            EndTransactionRecord(),
            AbortTransactionRecord(),
            NoOpRecord(),
        ]
    ),
    max_size=25,
)


@given(STEPS, st.lists(st.integers(1, 5), min_size=25, max_size=25))
def test_any_batching_gives_the_same_image_or_the_same_refusal(
    messages: list[Message], sizes: list[int]
) -> None:
    one_by_one = MetadataImage()
    accepted: list[tuple[Message, int, int]] = []
    for offset, message in enumerate(messages):
        record = (message, type(message).MAX_VERSION, offset)
        with suppress(ReplayError):
            one_by_one = one_by_one.apply(*record)
            accepted.append(record)
    batched, position = MetadataImage(), 0
    for size in sizes:
        batched = batched.apply_all(accepted[position : position + size])
        position += size
    batched = batched.apply_all(accepted[position:])
    assert batched == one_by_one


def test_features_are_listed_by_name() -> None:
    assert FeaturesImage().all_levels() == {}


def gone_along(before: Mapping[Key, Value], delta: MapDelta[Key, Value]) -> dict[Key, Value]:
    """Return what the delta makes of `before`; fails where it tells anything wrong of it."""
    after = dict(before)
    for key, value in delta.removed.items():
        assert after.pop(key) == value
    for key, (old, new) in delta.changed.items():
        assert after[key] == old != new
        after[key] = new
    assert not set(delta.added) & set(after)
    return after | dict(delta.added)


@given(MAPS, MAPS)
def test_a_delta_leads_from_one_mapping_to_the_other(
    before: dict[int, int], after: dict[int, int]
) -> None:
    delta = map_delta(before, after)
    assert gone_along(before, delta) == after
    assert delta.is_empty == (before == after)


def test_nothing_differs_between_an_image_and_itself() -> None:
    image = fold(*START)
    delta = ImageDelta(image, image)
    parts = (
        delta.features,
        delta.brokers,
        delta.controllers,
        delta.topics,
        delta.partitions(ID),
        delta.configs,
        delta.client_quotas,
        delta.acls,
        delta.scram,
        delta.delegation_tokens,
    )
    assert all(part.is_empty for part in parts)


def test_only_what_changed_is_reported() -> None:
    before = fold(*START)
    after = fold(
        FeatureLevelRecord("group.version", 1),
        PartitionChangeRecord(0, ID, leader=-1),
        TopicRecord("u", OTHER_ID),
        ConfigRecord(2, "t", "retention.ms", None),
        onto=before,
    )
    delta = ImageDelta(before, after)
    assert delta.features == MapDelta({"group.version": 1}, {}, {})
    assert delta.brokers.is_empty
    assert set(delta.topics.added) == {OTHER_ID}
    assert set(delta.topics.changed) == {ID}
    (old, new) = delta.partitions(ID).changed[0]
    assert (old.leader, new.leader, new.leader_epoch) == (1, -1, 1)
    assert [(key, dict(one)) for key, one in delta.configs.removed.items()] == [
        ((2, "t"), {"retention.ms": "1"})
    ]


@pytest.mark.parametrize("is_forward", [True, False])
def test_a_topic_that_is_gone_takes_its_partitions_along(*, is_forward: bool) -> None:
    before = fold(*START)
    after = fold(RemoveTopicRecord(ID), onto=before)
    delta = ImageDelta(before, after) if is_forward else ImageDelta(after, before)
    topics, partitions = delta.topics, delta.partitions(ID)
    assert set(topics.removed if is_forward else topics.added) == {ID}
    assert set(partitions.removed if is_forward else partitions.added) == {0}
