"""A metadata log with a record of every type in every version, as a story that makes sense."""

from collections.abc import Iterable, Iterator

from kvorum.metadata.record_frame import RecordAndVersion, encode_record
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
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.messages.zk_migration_state_record import ZkMigrationStateRecord
from kvorum.wire.records import build_data_batch

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
SHA_256, SHA_512 = 1, 2
DIRECTORIES = [bytes([number]) * 16 for number in (0xA1, 0x07, 0x5C)]
STREAM, PLAIN, GONE = (bytes([0x10 + number]) * 16 for number in range(3))
ALLOWED, DENIED, REVOKED = (bytes([0x20 + number]) * 16 for number in range(3))
FEATURES = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


def every_batch() -> list[list[RecordAndVersion]]:
    """Return the batches of the log, each a list of records with their versions."""
    return [
        _levels(),
        [_broker(number, epoch=20 + number, version=number) for number in range(5)],
        [(_controller(3000), 0), (_controller(3001), 0)],
        _broker_changes(),
        _topics(),
        _partition_changes(),
        _configs(),
        _client_quotas(),
        [(ProducerIdsRecord(4, 24, 5000), 0), (ProducerIdsRecord(3, 23, 1 << 40), 0)],
        _acls(),
        _scram(),
        # Within the batch before, this would make real Kafka forget alice too: of a mechanism whose
        # last user is removed it drops those that the same batch adds.
        [(RemoveUserScramCredentialRecord("bob", SHA_512), 0)],
        _delegation_tokens(),
        _transactions(),
        [(ClearElrRecord(""), 0), (ZkMigrationStateRecord(0), 0), (NoOpRecord(), 0)],
    ]


def log_of(
    batches: Iterable[Iterable[RecordAndVersion]], *, begin_ms: int = 1_700_000_000_000
) -> bytes:
    """Return the batches as a log, each about a second after the one before."""
    return b"".join(_log_batches(batches, begin_ms))


def _log_batches(batches: Iterable[Iterable[RecordAndVersion]], begin_ms: int) -> Iterator[bytes]:
    offset = 0
    for number, batch in enumerate(batches):
        values = [encode_record(message, version) for message, version in batch]
        yield build_data_batch(
            values, base_offset=offset, epoch=7, timestamp_ms=begin_ms + 1010 * number
        )
        offset += len(values)


def _levels() -> list[RecordAndVersion]:
    levels = {"metadata.version": 30, "kraft.version": 1, **FEATURES}
    records: list[RecordAndVersion] = [
        (FeatureLevelRecord(name, level), 0) for name, level in levels.items()
    ]
    return [*records, (FeatureLevelRecord("share.version", 0), 0)]


def _broker(broker_id: int, *, epoch: int, version: int) -> RecordAndVersion:
    points = [("PLAINTEXT", 0), ("SSL", 1), ("INSIDE", 2), ("outside-é", 3)]
    record = RegisterBrokerRecord(
        broker_id=broker_id,
        is_migrating_zk_broker=version == 2,
        incarnation_id=bytes([broker_id + 1]) * 16,
        broker_epoch=epoch,
        end_points=[
            RegisterBrokerRecord.BrokerEndpoint(name, f"host-{broker_id}", 9092 + number, number)
            for name, number in points[: version + 1]
        ],
        features=[
            RegisterBrokerRecord.BrokerFeature("metadata.version", 7, 30),
            RegisterBrokerRecord.BrokerFeature("kraft.version", 0, 1),
            RegisterBrokerRecord.BrokerFeature("always", 1, 1),
            RegisterBrokerRecord.BrokerFeature("unbounded", 1, 32767),
        ],
        rack=f"rack {broker_id}" if broker_id % 2 else None,
        fenced=broker_id != 1,
    )
    if version >= 1:
        record.in_controlled_shutdown = broker_id == 3
    if version >= 3:
        record.log_dirs = DIRECTORIES
    if version >= 4:
        record.cordoned_log_dirs = DIRECTORIES[1:]
    return record, version


def _controller(controller_id: int) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=controller_id,
        incarnation_id=bytes([controller_id % 256]) * 16,
        zk_migration_ready=controller_id == 3001,
        end_points=[
            RegisterControllerRecord.ControllerEndpoint("CONTROLLER", "quorum", 9093, 0),
            RegisterControllerRecord.ControllerEndpoint("ADMIN", "quorum", 9094, 3),
        ],
        features=[RegisterControllerRecord.ControllerFeature("metadata.version", 7, 30)],
    )


def _broker_changes() -> list[RecordAndVersion]:
    return [
        (BrokerRegistrationChangeRecord(0, 20, fenced=-1), 0),
        (BrokerRegistrationChangeRecord(0, 20, in_controlled_shutdown=1), 1),
        (BrokerRegistrationChangeRecord(3, 23, log_dirs=DIRECTORIES[:2]), 2),
        (BrokerRegistrationChangeRecord(4, 24, cordoned_log_dirs=[]), 3),
        (BrokerRegistrationChangeRecord(3, 23, cordoned_log_dirs=DIRECTORIES[:1]), 3),
        (FenceBrokerRecord(1, 21), 0),
        (UnfenceBrokerRecord(2, 22), 0),
        (UnregisterBrokerRecord(0, 20), 0),
    ]


def _topics() -> list[RecordAndVersion]:
    plain = PartitionRecord(0, PLAIN, [1, 2], [2], leader=2, leader_epoch=3, partition_epoch=4)
    moving = PartitionRecord(
        partition_id=0,
        topic_id=STREAM,
        replicas=[3, 4, 2],
        isr=[3],
        removing_replicas=[2],
        adding_replicas=[4],
        leader=3,
        leader_recovery_state=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=DIRECTORIES,
        eligible_leader_replicas=[4],
        last_known_elr=[2],
    )
    alone = PartitionRecord(11, STREAM, [4], [4], leader=4, leader_epoch=0, partition_epoch=0)
    alone.directories = DIRECTORIES[2:]
    return [
        (TopicRecord("plain", PLAIN), 0),
        (plain, 0),
        (TopicRecord("Stream.of_things-1", STREAM), 0),
        (moving, 2),
        (alone, 1),
        (TopicRecord("gone", GONE), 0),
        (PartitionRecord(0, GONE, [3], [3], leader=3, leader_epoch=0, partition_epoch=0), 0),
    ]


def _partition_changes() -> list[RecordAndVersion]:
    grown = PartitionChangeRecord(11, STREAM, replicas=[4, 3], directories=DIRECTORIES[:2])
    shrunk = PartitionChangeRecord(11, STREAM, isr=[], leader=-1, eligible_leader_replicas=[4])
    shrunk.last_known_elr = [3]
    return [
        (PartitionChangeRecord(0, PLAIN, isr=[2, 1], leader=1), 0),
        (PartitionChangeRecord(0, PLAIN, removing_replicas=[1], adding_replicas=[3]), 0),
        (grown, 1),
        (shrunk, 2),
        (PartitionChangeRecord(0, STREAM, leader_recovery_state=0, isr=[3, 4]), 2),
        (ClearElrRecord("Stream.of_things-1"), 0),
        (PartitionChangeRecord(0, STREAM, eligible_leader_replicas=[2]), 2),
        (RemoveTopicRecord(GONE), 0),
    ]


def _configs() -> list[RecordAndVersion]:
    settings = [
        (TOPIC, "plain", "retention.ms", "3600000"),
        (TOPIC, "plain", "cleanup.policy", "compact,delete"),
        (TOPIC, "plain", "no.such.key", "of another release"),
        (BROKER, "", "log.retention.ms", "1000"),
        (BROKER, "4", "listener.name.outside.ssl.keystore.password", "two\nlines"),
        (BROKER, "4", "sasl.jaas.config", ""),
        (BROKER, "3", "gone", "soon"),
        (CLIENT_METRICS, "subscription: all", "interval.ms", "60000"),
        (GROUP, "a group/with (signs) \N{GRINNING FACE}", "consumer.session.timeout.ms", "45000"),
    ]
    records: list[RecordAndVersion] = [(ConfigRecord(*setting), 0) for setting in settings]
    return [*records, (ConfigRecord(BROKER, "3", "gone", None), 0)]


def _client_quotas() -> list[RecordAndVersion]:
    quotas: list[tuple[dict[str, str | None], str, float]] = [
        ({"user": "alice"}, "producer_byte_rate", 1024.0),
        ({"user": "alice"}, "request_percentage", 0.1),
        ({"user": "alice", "client-id": "web (1) \\ two"}, "consumer_byte_rate", 1e21),
        ({"user": "alice", "client-id": None}, "consumer_byte_rate", 5e-324),
        ({"user": None, "client-id": "loader"}, "controller_mutation_rate", 12345678.9),
        ({"ip": "127.0.0.9"}, "connection_creation_rate", 9007199254740993.0),
        ({"user": "bob"}, "producer_byte_rate", 1.0),
    ]
    records = [_quota(entity, key, value) for entity, key, value in quotas]
    removed = _quota({"user": "bob"}, "producer_byte_rate", 1.0)
    removed[0].remove = True
    return [*records, removed]


def _quota(entity: dict[str, str | None], key: str, value: float) -> tuple[ClientQuotaRecord, int]:
    parts = [ClientQuotaRecord.EntityData(kind, name) for kind, name in entity.items()]
    return ClientQuotaRecord(parts, key, value), 0


def _acls() -> list[RecordAndVersion]:
    entries = [
        (ALLOWED, 2, "plain", 3, "User:alice", "*", 3, 3),
        (DENIED, 4, "kafka-cluster", 4, "User:CN=a,OU=b", "127.0.0.1", 15, 2),
        (REVOKED, 3, "readers", 3, "User:bob", "*", 8, 3),
    ]
    records: list[RecordAndVersion] = [(AccessControlEntryRecord(*entry), 0) for entry in entries]
    return [*records, (RemoveAccessControlEntryRecord(REVOKED), 0)]


def _scram() -> list[RecordAndVersion]:
    return [
        (UserScramCredentialRecord("alice", SHA_256, b"salt", b"\x00\x01", b"\xff", 4096), 0),
        (UserScramCredentialRecord("alice", SHA_512, b"s", b"\x80" * 64, b"\x7f" * 64, 8192), 0),
        (UserScramCredentialRecord("bob", SHA_512, b"s", b"a", b"b", 4096), 0),
    ]


def _delegation_tokens() -> list[RecordAndVersion]:
    renewers = ["User:bob", "User:carol"]
    return [
        (DelegationTokenRecord("User:alice", "User:boss", renewers, 1, 3000, 2000, "kept"), 0),
        (DelegationTokenRecord("User:alice", "User:alice", [], 1, 3000, 2000, "renewed"), 0),
        (DelegationTokenRecord("User:alice", "User:alice", [], 1, 3000, 2500, "renewed"), 0),
        (DelegationTokenRecord("User:bob", "User:bob", [], 1, 2, 2, "expired"), 0),
        (RemoveDelegationTokenRecord("expired"), 0),
    ]


def _transactions() -> list[RecordAndVersion]:
    return [
        (BeginTransactionRecord("kept"), 0),
        (ConfigRecord(BROKER, "", "inside", "a transaction"), 0),
        (EndTransactionRecord(), 0),
        (BeginTransactionRecord(None), 0),
        (ConfigRecord(BROKER, "", "inside", "another one"), 0),
        (RemoveTopicRecord(PLAIN), 0),
        (AbortTransactionRecord("no longer wanted"), 0),
    ]
