"""Logs of given records, and of random ones that follow each other legally, of every kind."""

from collections.abc import Callable
from random import Random
from typing import TypeVar

from tests.support.spark.small_logs import written_records

from kvorum.history import HistoryRow, LogRecord, MetadataHistory
from kvorum.metadata.image import MetadataImage
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
from kvorum.wire.messages.k_raft_version_record import KRaftVersionRecord
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
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.primitives import Message

RECORD_COUNT = 150
BROKERS: tuple[int, ...] = (1, 2, 3, 4)
NAMES = ("a", "b", "c")
Row = TypeVar("Row")


def log_of(*messages: Message) -> list[LogRecord]:
    """Return a log with the leader's record at offset 0, and one record a second after it."""
    return written_records([(message, type(message).MAX_VERSION) for message in messages])


def rows_of(row_type: type[Row], *messages: Message) -> list[Row]:
    """Return the rows of one type that such a log makes."""
    history = MetadataHistory()
    rows: list[HistoryRow] = [*history.add_all(log_of(*messages)), *history.open_rows()]
    return [row for row in rows if isinstance(row, row_type)]


class RandomLog:
    """A log under construction, with the image that its records fold into."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.image = MetadataImage()
        self.epoch = 1
        self.records: list[LogRecord] = []
        self.append(LeaderChangeMessage(leader_id=1))

    def append(self, message: Message) -> None:
        offset, version = len(self.records), type(message).MAX_VERSION
        if message.API_KEY is None:
            version = 0
        else:
            self.image = self.image.apply(message, version, offset)
        self.records.append(LogRecord(offset, self.epoch, 1000 + offset * 10, message, version))

    def control(self) -> Message:
        kind = self.random.randrange(3)
        if kind == 0:
            self.epoch += 1
            voters = [LeaderChangeMessage.Voter(each) for each in (1, 2, 3)]
            return LeaderChangeMessage(
                leader_id=self.random.randint(1, 3), voters=voters, granting_voters=voters[:2]
            )
        if kind == 1:
            return KRaftVersionRecord(k_raft_version=1)
        return VotersRecord(voters=[VotersRecord.Voter(voter_id=self.random.randint(1, 3))])

    def transaction(self) -> Message:
        if self.image.transaction is None:
            return BeginTransactionRecord(name="t")
        return self.random.choice((EndTransactionRecord(), AbortTransactionRecord(reason=None)))

    def broker(self) -> Message:
        broker_id = self.random.choice(BROKERS)
        broker = self.image.cluster.brokers.get(broker_id)
        if broker is None or self.random.random() < 0.2:
            epoch = len(self.records)
            return RegisterBrokerRecord(
                broker_id=broker_id,
                incarnation_id=self.random.randbytes(16),
                broker_epoch=epoch,
                end_points=[RegisterBrokerRecord.BrokerEndpoint("PLAIN", "host", 9092, 0)],
                rack=self.random.choice((None, "r")),
                fenced=True,
                log_dirs=[bytes([broker_id]) * 16],
                cordoned_log_dirs=self.random.choice((None, [bytes([broker_id]) * 16])),
            )
        if self.random.random() < 0.1:
            return UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch)
        return BrokerRegistrationChangeRecord(
            broker_id=broker_id,
            broker_epoch=broker.epoch,
            fenced=self.random.choice((-1, 0, 1)),
            in_controlled_shutdown=self.random.choice((0, 0, 1)),
            log_dirs=self.random.choice(([], [bytes([9]) * 16])),
        )

    def topic(self) -> Message:
        name = self.random.choice(NAMES)
        topic_id = self.image.topics.ids.get(name)
        if topic_id is None:
            return TopicRecord(name, self.random.randbytes(16))
        if self.random.random() < 0.15:
            return RemoveTopicRecord(topic_id=topic_id)
        if self.random.random() < 0.1:
            return ClearElrRecord(topic_name=self.random.choice((name, "")))
        return self.partition(topic_id)

    def partition(self, topic_id: bytes) -> Message:
        index = self.random.randrange(3)
        replicas = self.random.sample(BROKERS, 3)
        isr = replicas[: self.random.randint(1, 3)]
        if self.image.topics.partition(topic_id, index) is None:
            return PartitionRecord(index, topic_id, replicas, isr, leader=isr[0])
        chance = self.random.random()
        return PartitionChangeRecord(
            index,
            topic_id,
            isr=self.random.choice((None, isr)),
            leader=self.random.choice((-2, -1, *isr)),
            replicas=replicas if chance < 0.2 else None,
            adding_replicas=replicas[:1] if chance < 0.1 else None,
            eligible_leader_replicas=self.random.choice((None, [], [replicas[-1]])),
            last_known_elr=self.random.choice((None, [], [replicas[0]])),
            leader_recovery_state=self.random.choice((-1, -1, 0, 1)),
            directories=[bytes([each]) * 16 for each in replicas] if chance < 0.2 else None,
        )

    def config(self) -> Message:
        kind, name, key = self.random.choice(
            (
                *((2, name, "min.insync.replicas") for name in NAMES),
                (4, "", "min.insync.replicas"),
                (4, "1", "log.cleaner.threads"),
                (4, "", "ssl.key.password"),
            )
        )
        return ConfigRecord(kind, name, key, self.random.choice((None, "1", "2", "3")))

    def security(self) -> Message:
        if self.image.acls.entries and self.random.random() < 0.3:
            return RemoveAccessControlEntryRecord(id=next(iter(self.image.acls.entries)))
        return self.random.choice(
            (
                AccessControlEntryRecord(self.random.randbytes(16), 2, "a", 3, "User:u", "*", 3, 3),
                UserScramCredentialRecord("u", self.random.randint(1, 2), b"s", b"k", b"v", 4096),
                RemoveUserScramCredentialRecord(name="u", mechanism=1),
                DelegationTokenRecord("User:o", "User:r", ["User:p"], 1, 2, len(self.records), "t"),
                RemoveDelegationTokenRecord(token_id="t"),
            )
        )

    def other(self) -> Message:
        entity = [ClientQuotaRecord.EntityData("user", self.random.choice((None, "u")))]
        return self.random.choice(
            (
                NoOpRecord(),
                ClientQuotaRecord(entity, "producer_byte_rate", 5.5, self.random.random() < 0.3),
                FeatureLevelRecord("metadata.version", self.random.randint(26, 30)),
                FeatureLevelRecord("eligible.leader.replicas.version", self.random.randint(0, 1)),
                ProducerIdsRecord(1, 1, len(self.records) * 1000),
                RegisterControllerRecord(
                    controller_id=1, incarnation_id=bytes([self.random.randint(1, 2)]) * 16
                ),
            )
        )


def random_log(seed: int) -> list[LogRecord]:
    """Return a log of `RECORD_COUNT` records; a transaction may be open at its end."""
    log = RandomLog(seed)
    draws: tuple[Callable[[], Message], ...] = (
        log.control, log.transaction, log.broker, log.topic, log.config, log.security, log.other,
    )  # fmt: skip
    weights = (1, 2, 6, 14, 3, 3, 4)
    while len(log.records) < RECORD_COUNT:
        log.append(log.random.choices(draws, weights)[0]())
    return log.records
