"""Metadata logs drawn at random: every record makes sense after those before it."""

from collections.abc import Callable
from random import Random

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord

METADATA_VERSION = 30
BROKERS = range(6)
# The last two come in another order as UTF-16 than as code points.
NAMES = (
    "a",
    "b.c",
    "d_e",
    "-",
    "é",
    "x" * 40,
    "(y)",
    "z\\",
    "\N{FULLWIDTH TILDE}",
    "\N{GRINNING FACE}",
)
BATCH_RECORDS_MAX = 12


class RandomLog:
    """Draws batches from a seed, and keeps the image that they lead to."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._image = MetadataImage()
        self._offset = 0
        self._draws: tuple[Callable[[], RecordAndVersion | None], ...] = (
            self._register_broker,
            self._change_broker,
            self._unregister_broker,
            self._feature_level,
            self._topic,
            *[self._partition] * 2,
            *[self._change_partition] * 3,
            self._clear_elr,
            self._config,
            self._client_quota,
            self._access_control_entry,
            self._remove_access_control_entry,
            self._credential,
            self._token,
            self._remove_token,
            self._producer_ids,
        )

    def batches(self, count: int) -> list[list[RecordAndVersion]]:
        """Draw so many batches; the first sets levels at which a snapshot can hold everything."""
        levels = {"metadata.version": METADATA_VERSION, "eligible.leader.replicas.version": 1}
        first = [self._kept((FeatureLevelRecord(*level), 0)) for level in levels.items()]
        return [first, *(self._batch() for _ in range(count - 1))]

    def _batch(self) -> list[RecordAndVersion]:
        # A removal is alone in its batch: within one, real Kafka at times keeps or forgets
        # what the records do not say (configurations of a removed topic, credentials).
        alone = self._random.choice((self._remove_topic, self._remove_credential, None, None, None))
        if alone is not None and (record := alone()) is not None:
            return [self._kept(record)]
        batch: list[RecordAndVersion] = []
        for _ in range(self._random.randint(1, BATCH_RECORDS_MAX)):
            record = self._random.choice(self._draws)()
            if record is not None:
                batch.append(self._kept(record))
        return batch or [self._kept((ProducerIdsRecord(0, 0, 1), 0))]

    def _kept(self, record: RecordAndVersion) -> RecordAndVersion:
        self._image = self._image.apply(*record, self._offset)
        self._offset += 1
        return record

    def _name(self) -> str:
        return self._random.choice(NAMES)

    def _id(self) -> bytes:
        return self._random.randbytes(16)

    def _some(self, values: list[int]) -> list[int]:
        return self._random.sample(values, self._random.randint(0, len(values)))

    def _register_broker(self) -> RecordAndVersion | None:
        directories = [self._id() for _ in range(self._random.randint(0, 3))]
        record = RegisterBrokerRecord(
            broker_id=self._random.choice(BROKERS),
            incarnation_id=self._id(),
            broker_epoch=self._offset,
            end_points=[
                RegisterBrokerRecord.BrokerEndpoint(name, "host", self._random.randrange(65536), 2)
                for name in self._random.sample(NAMES, 3)
            ],
            features=[
                RegisterBrokerRecord.BrokerFeature(name, 0, self._random.choice((0, 4, 32767)))
                for name in self._random.sample(NAMES, 3)
            ],
            rack=self._random.choice((None, "", "r1")),
            fenced=self._random.random() < 0.5,
            in_controlled_shutdown=self._random.random() < 0.2,
            log_dirs=directories,
            cordoned_log_dirs=self._random.choice((None, [], directories[:1])),
        )
        return record, 4

    def _change_broker(self) -> RecordAndVersion | None:
        if not self._image.cluster.brokers:
            return None
        brokers = self._image.cluster.brokers
        broker = brokers[self._random.choice(sorted(brokers))]
        record = BrokerRegistrationChangeRecord(
            broker.id,
            broker.epoch,
            fenced=self._random.choice((-1, 0, 1)),
            in_controlled_shutdown=self._random.choice((0, 0, 1)),
            log_dirs=self._random.choice(([], [self._id(), self._id()])),
            cordoned_log_dirs=self._random.choice((None, [], list(broker.directories[:1]))),
        )
        return record, 3

    def _unregister_broker(self) -> RecordAndVersion | None:
        if len(self._image.cluster.brokers) < len(BROKERS):
            return None
        broker = self._image.cluster.brokers[self._random.choice(BROKERS)]
        return UnregisterBrokerRecord(broker.id, broker.epoch), 0

    def _feature_level(self) -> RecordAndVersion | None:
        name, top = self._random.choice((("group.version", 1), ("transaction.version", 2)))
        return FeatureLevelRecord(name, self._random.randint(0, top)), 0

    def _topic(self) -> RecordAndVersion | None:
        name = f"{self._name()}{self._random.randrange(30)}"
        return None if name in self._image.topics.ids else (TopicRecord(name, self._id()), 0)

    def _some_topic(self) -> TopicImage | None:
        names = sorted(self._image.topics.ids)
        return self._image.topics.by_name(self._random.choice(names)) if names else None

    def _remove_topic(self) -> RecordAndVersion | None:
        topic = self._some_topic()
        return None if topic is None else (RemoveTopicRecord(topic.id), 0)

    def _partition(self) -> RecordAndVersion | None:
        topic = self._some_topic()
        if topic is None:
            return None
        replicas = self._random.sample(BROKERS, 3)
        record = PartitionRecord(
            partition_id=self._random.randrange(12),
            topic_id=topic.id,
            replicas=replicas,
            isr=self._some(replicas),
            removing_replicas=self._some(replicas),
            adding_replicas=self._some(replicas),
            leader=self._random.choice((-1, *replicas)),
            leader_recovery_state=self._random.randint(0, 1),
            leader_epoch=self._random.randrange(100),
            partition_epoch=self._random.randrange(100),
            directories=self._random.choice(([], [self._id() for _ in replicas])),
            eligible_leader_replicas=self._random.choice((None, self._some(replicas))),
            last_known_elr=self._random.choice((None, [], replicas[:1])),
        )
        return record, 2

    def _change_partition(self) -> RecordAndVersion | None:
        topic = self._some_topic()
        if topic is None:
            return None
        partitions = topic.sorted_partitions()
        if not partitions:
            return None
        index, partition = self._random.choice(partitions)
        record = self._change(partition)
        record.partition_id, record.topic_id = index, topic.id
        return record, 2

    def _change(self, partition: PartitionRegistration) -> PartitionChangeRecord:
        replicas = list(partition.replicas)
        record = PartitionChangeRecord(
            isr=self._random.choice((None, self._some(replicas))),
            leader=self._random.choice((-2, -1, *replicas)),
            removing_replicas=self._random.choice((None, self._some(replicas))),
            adding_replicas=self._random.choice((None, self._some(replicas))),
            leader_recovery_state=self._random.choice((-1, 0, 1)),
            eligible_leader_replicas=self._random.choice((None, self._some(replicas))),
            last_known_elr=self._random.choice((None, [], replicas[:1])),
        )
        if self._random.random() < 0.3:
            record.replicas = self._random.sample(BROKERS, self._random.randint(1, 4))
            record.directories = [self._id() for _ in record.replicas]
        return record

    def _clear_elr(self) -> RecordAndVersion | None:
        topic = self._some_topic()
        if topic is None or self._random.random() < 0.5:
            return None
        return ClearElrRecord(self._random.choice(("", topic.name))), 0

    def _config(self) -> RecordAndVersion | None:
        topic = self._some_topic()
        resources = [(4, "", "any.key"), (4, "3", "other key")]
        resources.append((32, self._name(), "consumer.session.timeout.ms"))
        if topic is not None:
            resources.append((2, topic.name, "retention.ms"))
        kind, name, key = self._random.choice(resources)
        return ConfigRecord(kind, name, key, self._random.choice((None, "", "1", "é\n2"))), 0

    def _client_quota(self) -> RecordAndVersion | None:
        kinds = self._random.choice((("user",), ("client-id",), ("ip",), ("client-id", "user")))
        parts = [
            ClientQuotaRecord.EntityData(kind, self._random.choice((None, *NAMES)))
            for kind in kinds
        ]
        value = self._random.choice((1.0, 0.25, 1e7, 123456789.125, self._random.random() * 1e9))
        is_removal = self._random.random() < 0.3
        return ClientQuotaRecord(parts, self._random.choice(("x", "y")), value, is_removal), 0

    def _access_control_entry(self) -> RecordAndVersion | None:
        draw = self._random.randint
        record = AccessControlEntryRecord(
            self._id(), draw(2, 7), self._name(), draw(3, 4), "User:a", "*", draw(2, 15), draw(2, 3)
        )
        return record, 0

    def _remove_access_control_entry(self) -> RecordAndVersion | None:
        ids = sorted(self._image.acls.entries)
        return (RemoveAccessControlEntryRecord(self._random.choice(ids)), 0) if ids else None

    def _credential(self) -> RecordAndVersion | None:
        salt, stored, server = (self._random.randbytes(8) for _ in range(3))
        kind = self._random.randint(1, 2)
        return UserScramCredentialRecord(self._name(), kind, salt, stored, server, 4096), 0

    def _remove_credential(self) -> RecordAndVersion | None:
        keys = sorted(self._image.scram.credentials)
        if not keys:
            return None
        mechanism, name = self._random.choice(keys)
        return RemoveUserScramCredentialRecord(name, mechanism), 0

    def _token(self) -> RecordAndVersion | None:
        renewers = [f"User:{name}" for name in self._random.sample(NAMES, 2)]
        issued, limit, expiry = (self._random.randrange(1 << 40) for _ in range(3))
        return DelegationTokenRecord(
            "User:a", "User:b", renewers, issued, limit, expiry, self._name()
        ), 0

    def _remove_token(self) -> RecordAndVersion | None:
        tokens = sorted(self._image.delegation_tokens.tokens)
        return (RemoveDelegationTokenRecord(self._random.choice(tokens)), 0) if tokens else None

    def _producer_ids(self) -> RecordAndVersion | None:
        return ProducerIdsRecord(0, 0, self._random.randrange(1 << 62)), 0
