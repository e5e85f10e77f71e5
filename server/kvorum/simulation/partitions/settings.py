"""The settings that a cluster and its groups draw, and the times that all clusters share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Final

from kvorum.broker.dead_letter_queue.dead_letter_topic import GROUP_ENABLE
from kvorum.groups.classic_group.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from kvorum.groups.settings import (
    ConsumerGroupSettings,
    GroupCoordinatorSettings,
    ShareGroupSettings,
)
from kvorum.metadata.topic_names import SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from kvorum.node.broker.coordinator.linger import ADAPTIVE
from kvorum.node.config import GroupSettings, OffsetsTopicSettings
from kvorum.simulation.network import HEALTHY, Conditions
from kvorum.simulation.partitions.consumer_group_settings import ClusterConsumerGroupSettings
from kvorum.simulation.partitions.share_group_settings import (
    DEAD_LETTER_QUEUE,
    STATE_MIN_INSYNC,
    ClusterShareGroupSettings,
)
from kvorum.wire.records import Compression

TOPIC: Final = "t"
TOPIC_ID: Final = bytes([1] * 16)
OFFSETS_ID: Final = bytes([2] * 16)
"""The id of ``__consumer_offsets``."""
OFFSETS_REPLICAS: Final = 3
"""The replicas of its partition, as by default."""
TRANSACTIONS_ID: Final = bytes([3] * 16)
"""The id of ``__transaction_state``, whose partitions have as many replicas."""
SHARE_STATE_ID: Final = bytes([4] * 16)
"""The id of ``__share_group_state``."""
DEAD_LETTERS_ID: Final = bytes([5] * 16)
"""The id of the topic of dead letters."""
CLUSTER_ID: Final = "abcdefghijklmnopqrstuv"
FIRST_CLIENT_ID: Final = -1_000
"""The place of the first client in the network; others follow downwards, below all operators."""
SESSION_MS: Final = 350
HEARTBEAT_MS: Final = 60
LAG_MAX_MS: Final = 150
FAULTS_FROM_MS: Final = 900
STRIKE_MS: Final = 140
"""The mean time from one fault to the next."""
PEACE_FROM_MS: Final = 6_500
QUIET_FROM_MS: Final = 7_500
"""The end of all writes, so that the logs can be compared."""
PAUSE_AT_MS: Final = 9_500
"""The time of a pause of one broker, while no producer writes."""
END_MS: Final = 10_500
IS_COMPACTED: Final = 0.4
COMPACTION_LAG_MS: Final = 4_000
"""The least time for which records stay in compacted logs: longer than a replica is away.

As in Kafka, a replica that has fetched a compacted log does not know where an epoch began whose
first records are gone; one that has others there would not learn of it from such a leader.
"""
COMPACTION_LAG_IN_STORM_MS: Final = 6_500
"""The same where a log that moves is such a replica: longer than all faults go on."""
COMPACTION_MS_MAX: Final = 700
"""The time in which records are compacted that may be."""

HAS_FETCH_SESSIONS: Final = 0.15
"""The share of worlds with consumers that fetch in sessions."""
HAS_OLDER_CLIENTS: Final = 0.2
"""The share of worlds whose clients are of older releases."""
HAS_FAILING_METADATA_DIRECTORIES: Final = 0.2
"""The share of worlds in which disks of metadata logs fail."""
METADATA_DIRECTORY_FAILS_MS: Final = 900
HAS_PIPELINES: Final = 0.2
"""The share of worlds with producers that have several batches in flight."""
HAS_COORDINATED_TRANSACTIONS: Final = 0.35
"""The share of worlds, without unclean elections, whose brokers coordinate transactions."""
KEEPS_RECORDS: Final = 0.6
"""The share of those in which no record is deleted or compacted, so that one is lost or read."""
HAS_CONSUMER_GROUP: Final = 0.2
"""The share of worlds with a group of the consumer protocol (KIP-848)."""
HAS_SHARE_GROUP: Final = 0.15
"""The share of worlds, without unclean elections, with a share group (KIP-932)."""
HAS_SHORT_LIVED_TOPIC: Final = 0.2
"""The share of worlds in which a topic is created and deleted again and again."""
IS_STORMY: Final = 0.2
"""The share of worlds whose replicas move all the time, over a slow network."""
_DELAY_MS_MEAN: Final = 4.0
"""Long enough that messages often overtake each other."""
_LATE: Final = 0.02, 600
_LATE_IN_STORM: Final = 0.1, 2_000
MOVE_IN_STORM_MS: Final = 80
_SHARED_SEGMENT_BYTES_MIN: Final = 20_000
"""The least bytes of a coordinator's segments in a world with a share group."""
_CONSUMER_SEGMENT_BYTES_MIN: Final = 4_000
"""The same in a world with a consumer group."""
_WRITE_BACK_MS: Final = 60, 400
_WRITE_BACK_IN_STORM_MS: Final = 5, 60

_RETENTIONS: Final = ((-1, -1), (-1, -1), (4_000, -1), (-1, 1_500))
_TRANSACTION_VERSIONS: Final = (0, 1, 2, 2, 2)
_ID_EXPIRATIONS_MS: Final = (700, 604_800_000, 604_800_000)
_STRIKES_MS: Final = (300, 900, 2_000)
_ABORT_TIMED_OUT_MS: Final = 100
_REMOVE_EXPIRED_MS: Final = 200
_ADD_PARTITIONS_BACKOFF_MS: Final = 20
_ADD_PARTITIONS_BACKOFF_MS_MAX: Final = 100
TRANSACTIONS_MIN_INSYNC: Final = 2
"""The least in-sync replicas of ``__transaction_state``, as by default."""
_EPOCH_VERSIONS: Final = (15, 17, 18)
_VERSIONS: Final = (13, 14, *_EPOCH_VERSIONS)

ROOTS: Final = (Path("/logs-1"), Path("/logs-2"))
"""The log directories of each broker, each on a disk of its own."""
SESSION_TIMEOUT_MS: Final = 400
STATIC_SESSION_TIMEOUT_MS: Final = 1_200
"""Static members have longer sessions, so that they can be started again within one (KIP-345)."""
COMMIT_TIMEOUT_MS: Final = 200
_APPEND_LINGERS_MS: Final = (ADAPTIVE, 20)
"""Of requests that come one by one, batches have several after a while alone."""
RESTLESS_UNTIL_MS: Final = 8_500
"""The end of what members do unasked: after it they only settle."""
SHORT_REBALANCE_MS_MAX: Final = 1_000
METADATA_BYTES_MAX: Final = 64
_UNLIMITED: Final = 2**31 - 1


def directory_id(broker_id: int, number: int) -> bytes:
    """Return the id of the log directory that a broker has at a place of `ROOTS`."""
    return bytes([0xD0] * 14 + [number, broker_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTransactionSettings:
    """The coordinators of transactions of a cluster.

    `version` is the finalized transaction.version; ids expire after `expiration_ms`.
    """

    partitions: int
    version: int
    expiration_ms: int
    strike_ms: int
    """The mean time from one fault to the next: a transaction takes a while without any."""

    @classmethod
    def draw(cls, random: Random) -> ClusterTransactionSettings:
        """Draw the settings of the coordinators of a cluster."""
        return cls(
            partitions=random.choice((1, 2)),
            version=random.choice(_TRANSACTION_VERSIONS),
            expiration_ms=random.choice(_ID_EXPIRATIONS_MS),
            strike_ms=random.choice(_STRIKES_MS),
        )

    @property
    def of_broker(self) -> dict[str, str]:
        """The configuration of the brokers."""
        return {
            "transaction.state.log.num.partitions": str(self.partitions),
            "transactional.id.expiration.ms": str(self.expiration_ms),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": str(_ABORT_TIMED_OUT_MS),
            "transaction.remove.expired.transaction.cleanup.interval.ms": str(_REMOVE_EXPIRED_MS),
            "add.partitions.to.txn.retry.backoff.ms": str(_ADD_PARTITIONS_BACKOFF_MS),
            "add.partitions.to.txn.retry.backoff.max.ms": str(_ADD_PARTITIONS_BACKOFF_MS_MAX),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The settings of a cluster: its members, its topic, its network."""

    brokers: int
    partitions: int
    replicas: int
    min_insync_replicas: int
    is_elr_enabled: bool
    is_unclean_enabled: bool
    loss: float
    duplication: float
    segment_bytes: int
    rests_after_ms: int
    """The time for which the clients write, before they rest for as long."""
    groups: ClusterGroupSettings

    is_compacted: bool = False
    delete_retention_ms: int = -1
    """The time for which tombstones and markers of transactions stay in compacted logs."""

    retention_bytes: int = -1
    retention_ms: int = -1
    """By which size or age records are deleted; -1 for no limit."""

    is_stormy: bool = False
    """Whether operators move replicas between log directories all the time, and start each stopped
    broker at once, while logs are flushed often and messages are later."""

    replica_fetch_version: int = 18
    """The version of Fetch of followers, as an older metadata.version has it."""

    deletes_records: bool = True
    """Whether records are deleted: by operators, and by their size or age."""

    transactions: ClusterTransactionSettings | None = None
    """The coordinators of transactions; without any, producers play their part."""

    @classmethod
    def draw(
        cls,
        random: Random,
        *,
        storm: Random,
        linger: Random,
        coordinated: Random,
        consumer_group: Random,
        share_group: Random,
    ) -> ClusterSettings:
        """Draw the settings of a cluster.

        `storm` and `linger` draw what their names say alone, `coordinated` whether the brokers
        coordinate transactions, `consumer_group` and `share_group` whether there are such groups.
        """
        drawn = cls._draw_transactions(cls._draw(random, storm, linger), coordinated)
        drawn = cls._draw_share_group(drawn, share_group)
        if consumer_group.random() >= HAS_CONSUMER_GROUP:
            return drawn
        group = ClusterConsumerGroupSettings.draw(consumer_group)
        return replace(drawn, groups=replace(drawn.groups, consumer=group))

    @staticmethod
    def _draw_transactions(drawn: ClusterSettings, coordinated: Random) -> ClusterSettings:
        if coordinated.random() >= HAS_COORDINATED_TRANSACTIONS or drawn.is_unclean_enabled:
            return drawn
        drawn = replace(drawn, transactions=ClusterTransactionSettings.draw(coordinated))
        if coordinated.random() >= KEEPS_RECORDS:
            return drawn
        return replace(
            drawn, is_compacted=False, deletes_records=False, retention_bytes=-1, retention_ms=-1
        )

    @staticmethod
    def _draw_share_group(drawn: ClusterSettings, random: Random) -> ClusterSettings:
        """Draw whether there is a share group: its coordinators' records are never compacted."""
        if random.random() >= HAS_SHARE_GROUP or drawn.is_unclean_enabled:
            return drawn
        share = ClusterShareGroupSettings.draw(random)
        return replace(drawn, is_compacted=False, groups=replace(drawn.groups, share=share))

    @classmethod
    def _draw(cls, random: Random, storm: Random, linger: Random) -> ClusterSettings:
        drawn = cls(
            replicas=random.choice((2, 3, 3)),
            brokers=random.randint(3, 5),
            partitions=random.randint(1, 3),
            min_insync_replicas=random.choice((1, 2, 2, 2)),
            is_elr_enabled=random.random() < 0.7,
            is_unclean_enabled=random.random() < 0.15,
            loss=random.choice((0.0, 0.01, 0.05)),
            duplication=random.choice((0.0, 0.02)),
            segment_bytes=random.choice((1_500, 4_000, 100_000)),
            rests_after_ms=random.choice((300, 1_000, END_MS, END_MS)),
            groups=ClusterGroupSettings.draw(random, linger),
            is_stormy=storm.random() < IS_STORMY,
        )
        # Only fetches of the later versions name their process (KIP-903).
        versions = _EPOCH_VERSIONS if drawn.may_lose_power else _VERSIONS
        drawn = replace(drawn, replica_fetch_version=random.choice(versions))
        if not drawn.is_unclean_enabled and random.random() < IS_COMPACTED:
            # The segment that is written to is never compacted.
            return replace(
                drawn,
                is_compacted=True,
                segment_bytes=min(drawn.segment_bytes, 4_000),
                delete_retention_ms=random.choice((100, 1_000, 86_400_000)),
            )
        retention_bytes, retention_ms = random.choice(_RETENTIONS)
        return replace(drawn, retention_bytes=retention_bytes, retention_ms=retention_ms)

    def is_resting(self, now_ms: float) -> bool:
        """Return whether nothing new is written now."""
        return now_ms > QUIET_FROM_MS or int(now_ms / self.rests_after_ms) % 2 == 1

    def conditions(self, controllers: int) -> Conditions:
        """Return the usual conditions of a path with so many controllers at its ends.

        A message that is late holds up a whole replica of the metadata log, so none is late where
        a controller is; and controllers lose touch only by what strikes them.
        """
        if controllers > 1:
            return HEALTHY
        usual = Conditions(
            loss=self.loss, duplication=self.duplication, mean_delay_ms=_DELAY_MS_MEAN
        )
        if controllers:
            return usual
        late, late_ms_max = _LATE_IN_STORM if self.is_stormy else _LATE
        return replace(usual, late=late, late_ms_max=late_ms_max)

    @property
    def strike_ms(self) -> int:
        """The mean time from one fault to the next."""
        users = (self.transactions, self.groups.consumer, self.groups.share)
        return max(STRIKE_MS if one is None else one.strike_ms for one in users)

    @property
    def compaction_lag_ms(self) -> int:
        """The least time for which records stay in compacted logs."""
        return COMPACTION_LAG_IN_STORM_MS if self.is_stormy else COMPACTION_LAG_MS

    @property
    def old_until_ms(self) -> int:
        """The time before which records are old enough, at the end, to have been compacted."""
        return END_MS - self.compaction_lag_ms - COMPACTION_MS_MAX

    @property
    def write_back_ms(self) -> tuple[int, int]:
        """The shortest and the longest time from one flush of all logs to the next."""
        return _WRITE_BACK_IN_STORM_MS if self.is_stormy else _WRITE_BACK_MS

    @property
    def keeps_markers(self) -> bool:
        """Whether a replica that was away gets every marker, however long compaction goes on."""
        return not self.is_compacted or self.delete_retention_ms > END_MS

    def has_retention(self, place: int) -> bool:
        """Return whether records of a partition are deleted by their size or age."""
        return place < self.partitions and {self.retention_bytes, self.retention_ms} != {-1}

    @property
    def may_lose_power(self) -> bool:
        """Whether Kafka keeps its word where one broker loses what it has not flushed (KIP-966).

        With a minimum of one, the leader alone may have what is committed. Without ELR, the
        controller would let a broker lead that has lost records.
        """
        return self.is_elr_enabled and self.min_insync_replicas > 1

    @property
    def _coordinator_segment_bytes(self) -> int:
        if self.groups.share is not None:
            return max(self.segment_bytes, _SHARED_SEGMENT_BYTES_MIN)
        if self.groups.consumer is not None:
            return max(self.segment_bytes, _CONSUMER_SEGMENT_BYTES_MIN)
        return self.segment_bytes

    def topic_configs(self, name: str) -> dict[str, str]:
        """Return what a topic is configured with: segments that roll, and are removed soon."""
        configs = {
            "min.insync.replicas": str(self.min_insync_replicas),
            "internal.segment.bytes": str(self.segment_bytes),
            "index.interval.bytes": "300",
            "file.delete.delay.ms": "200",
        }
        if name != TOPIC:
            # A batch of a coordinator may be large that had to wait for long.
            configs |= {"internal.segment.bytes": str(self._coordinator_segment_bytes)}
        if self.is_compacted:
            configs |= {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.01",
                "min.compaction.lag.ms": str(self.compaction_lag_ms),
                "delete.retention.ms": str(self.delete_retention_ms),
            }
        if name == TRANSACTION_STATE_TOPIC:
            least = max(self.min_insync_replicas, TRANSACTIONS_MIN_INSYNC)
            return configs | {"min.insync.replicas": str(least)}
        if name == SHARE_GROUP_STATE_TOPIC:
            return configs | {
                "min.insync.replicas": str(max(self.min_insync_replicas, STATE_MIN_INSYNC))
            }
        if name == DEAD_LETTER_QUEUE:
            return configs | {GROUP_ENABLE: "true"}
        if name != TOPIC:
            return configs
        if self.is_unclean_enabled:
            configs["unclean.leader.election.enable"] = "true"
        return configs | {
            "retention.bytes": str(self.retention_bytes),
            "retention.ms": str(self.retention_ms),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterGroupSettings:
    """Times in milliseconds; `size_max` is ``group.max.size``.

    Members ask for one of `rebalance_timeouts_ms`, those without an instance id for the first.
    """

    members: int
    size_max: int
    protocol_type: str
    rebalance_timeouts_ms: tuple[int, ...]
    retention_ms: int
    retention_check_ms: int
    append_linger_ms: int
    consumer: ClusterConsumerGroupSettings | None = None
    """The group of the consumer protocol; None without one."""
    share: ClusterShareGroupSettings | None = None
    """The share group; None without one."""

    @classmethod
    def draw(cls, random: Random, linger: Random) -> ClusterGroupSettings:
        """Draw the settings of the groups; `linger` draws how long their batches are open."""
        members = random.randint(1, 4)
        size_max = random.choice((members, _UNLIMITED))
        # The workers of Kafka Connect are members without subscriptions.
        protocol_type = random.choice((CONSUMER_PROTOCOL_TYPE, "connect"))
        timeouts_ms = random.choice(((300,), (300, 1_200), (300, 1_200), (6_000,)))
        return cls(
            members=members,
            # Joins of members that have ended take the room of others until the rebalance is over.
            size_max=_UNLIMITED if timeouts_ms[0] > SHORT_REBALANCE_MS_MAX else size_max,
            protocol_type=protocol_type,
            rebalance_timeouts_ms=timeouts_ms,
            retention_ms=random.choice((800, 1_600)),
            retention_check_ms=random.choice((150, 400)),
            append_linger_ms=linger.choice(_APPEND_LINGERS_MS),
        )

    @property
    def longest_wait_ms(self) -> int:
        """The longest time for which members without an instance id let others wait.

        The oldest requests have no rebalance timeout, and their session's instead.
        """
        return max(self.rebalance_timeouts_ms[0], SESSION_TIMEOUT_MS)

    @property
    def of_broker(self) -> GroupSettings:
        """The settings of the brokers."""
        consumer = self.consumer
        share = self.share
        return GroupSettings(
            coordinator=GroupCoordinatorSettings(
                consumer=ConsumerGroupSettings() if consumer is None else consumer.of_broker,
                share=ShareGroupSettings() if share is None else share.of_group_coordinator,
                group_max_size=self.size_max,
                group_initial_rebalance_delay_ms=50,
                offset_metadata_max_bytes=METADATA_BYTES_MAX,
                offsets_retention_ms=self.retention_ms,
                offsets_retention_check_interval_ms=self.retention_check_ms,
            ),
            session_timeout_ms_min=100,
            session_timeout_ms_max=10_000,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            append_linger_ms=self.append_linger_ms,
            topic=OffsetsTopicSettings(1, 3, 1 << 20, Compression.NONE),
        )
