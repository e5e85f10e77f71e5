"""The settings of a share group (KIP-932), drawn for a part of the worlds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Final, NamedTuple

from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.share_group_config import ShareFetchSettings
from kvorum.groups.settings import ShareGroupSettings
from kvorum.node.broker.coordinator.linger import ADAPTIVE
from kvorum.node.config import ShareGroupStateTopicSettings, ShareStateSettings
from kvorum.share_coordinator.settings import ShareCoordinatorSettings
from kvorum.wire.records import Compression

SHARE_GROUP: Final = "sharers"
"""The id of the group."""
DEAD_LETTER_QUEUE: Final = "dlq.sharers"
"""The topic of its dead letters (KIP-1191), in a part of the worlds with the group."""
HAS_DEAD_LETTER_QUEUE: Final = 0.5
"""That part."""
_SESSIONS_MS: Final = (1_000, 2_000)
_DELIVERY_COUNT_LIMITS: Final = (2, 2, 3, 5)
_LOCKS_MS: Final = (200, 400, 800)
_LOCKS_MAX: Final = (300, 600, 2_000)
_UPDATES_PER_SNAPSHOT: Final = (0, 3, 500)
_PRUNE_INTERVALS_MS: Final = (150, 600)
_COLD_SNAPSHOTS_MS: Final = (250, 300_000)
_LINGERS_MS: Final = (ADAPTIVE, 5)
_STRIKES_MS: Final = (300, 900, 2_000)
_IS_RECORD_COPIED: Final = 0.7
_HEARTBEAT_MS: Final = 40
_INITIALIZE_RETRY_MS: Final = 300
_WRITE_TIMEOUT_MS: Final = 200
_TIMES_MS: Final = 10, 10_000
"""The bounds within which the groups of a world may have their times."""
STATE_REPLICAS: Final = 3
"""The replicas of partitions of ``__share_group_state``, as by default."""
STATE_MIN_INSYNC: Final = 2
"""The least of them in sync, as by default."""


class ClusterDeadLetterQueueSettings(NamedTuple):
    """The dead-letter queue of the group."""

    partitions: int
    is_record_copied: bool

    @classmethod
    def draw(cls, random: Random) -> ClusterDeadLetterQueueSettings:
        """Draw the settings of a queue."""
        return cls(random.choice((1, 2)), random.random() < _IS_RECORD_COPIED)

    @property
    def of_group(self) -> dict[str, str]:
        """The configuration of the group that has the queue."""
        return {
            "errors.deadletterqueue.topic.name": DEAD_LETTER_QUEUE,
            "errors.deadletterqueue.copy.record.enable": str(self.is_record_copied).lower(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShareGroupSettings:
    """The group, its share coordinators and the leaders of its partitions; times in milliseconds.

    `state_partitions` is how many ``__share_group_state`` has.
    """

    members: int
    state_partitions: int
    session_timeout_ms: int
    delivery_count_limit: int
    lock_ms: int
    """The time for which a member has what it acquires."""
    locks_max: int
    """The most records of a partition that are in flight."""
    isolation: IsolationLevel
    updates_per_snapshot: int
    prune_interval_ms: int
    cold_snapshot_ms: int
    append_linger_ms: int
    strike_ms: int
    """The mean time from one fault to the next: a write to a coordinator takes a while."""
    dead_letter_queue: ClusterDeadLetterQueueSettings | None = None
    """The dead-letter queue; None without one."""

    @classmethod
    def draw(cls, random: Random) -> ClusterShareGroupSettings:
        """Draw the settings of the group of a cluster."""
        drawn = cls._draw_without_queue(random)
        if random.random() >= HAS_DEAD_LETTER_QUEUE:
            return drawn
        return replace(drawn, dead_letter_queue=ClusterDeadLetterQueueSettings.draw(random))

    @classmethod
    def _draw_without_queue(cls, random: Random) -> ClusterShareGroupSettings:
        return cls(
            members=random.randint(2, 4),
            state_partitions=random.choice((1, 2)),
            session_timeout_ms=random.choice(_SESSIONS_MS),
            delivery_count_limit=random.choice(_DELIVERY_COUNT_LIMITS),
            lock_ms=random.choice(_LOCKS_MS),
            locks_max=random.choice(_LOCKS_MAX),
            isolation=random.choice(tuple(IsolationLevel)),
            updates_per_snapshot=random.choice(_UPDATES_PER_SNAPSHOT),
            prune_interval_ms=random.choice(_PRUNE_INTERVALS_MS),
            cold_snapshot_ms=random.choice(_COLD_SNAPSHOTS_MS),
            append_linger_ms=random.choice(_LINGERS_MS),
            strike_ms=random.choice(_STRIKES_MS),
        )

    @property
    def of_group_coordinator(self) -> ShareGroupSettings:
        """The settings of the brokers that coordinate the group."""
        least_ms, most_ms = _TIMES_MS
        return ShareGroupSettings(
            session_timeout_ms=self.session_timeout_ms,
            session_timeout_ms_min=least_ms,
            session_timeout_ms_max=most_ms,
            heartbeat_interval_ms=_HEARTBEAT_MS,
            heartbeat_interval_ms_min=least_ms,
            heartbeat_interval_ms_max=most_ms,
            assignment_interval_ms=0,
            initialize_retry_ms=_INITIALIZE_RETRY_MS,
            initialize_retry_ms_min=_INITIALIZE_RETRY_MS,
        )

    @property
    def of_leaders(self) -> ShareFetchSettings:
        """The settings of the brokers that lead its partitions."""
        return ShareFetchSettings(
            delivery_count_limit=self.delivery_count_limit,
            record_lock_duration_ms=self.lock_ms,
            record_locks_max=self.locks_max,
        )

    @property
    def of_share_coordinator(self) -> ShareStateSettings:
        """The settings of the brokers that keep the state of its partitions."""
        return ShareStateSettings(
            coordinator=ShareCoordinatorSettings(
                update_records_per_snapshot=self.updates_per_snapshot,
                cold_partition_snapshot_interval_ms=self.cold_snapshot_ms,
            ),
            write_timeout_ms=_WRITE_TIMEOUT_MS,
            append_linger_ms=self.append_linger_ms,
            prune_interval_ms=self.prune_interval_ms,
            topic=ShareGroupStateTopicSettings(
                partition_count=self.state_partitions,
                replication_factor=STATE_REPLICAS,
                min_insync_replicas=STATE_MIN_INSYNC,
                segment_bytes=1 << 20,
                compression=Compression.NONE,
            ),
        )

    @property
    def of_group(self) -> dict[str, str]:
        """The group's own configuration (resource GROUP): it is to have every record."""
        return {
            "share.auto.offset.reset": "earliest",
            "share.isolation.level": self.isolation.name.lower(),
            **({} if self.dead_letter_queue is None else self.dead_letter_queue.of_group),
        }
