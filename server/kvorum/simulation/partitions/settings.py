"""The settings that one world draws, and the times that all worlds have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.topic_log.log_validator import RecordRules
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig

TOPIC: Final = "t"
TOPIC_ID: Final = bytes([1] * 16)
OFFSETS_ID: Final = bytes([2] * 16)
"""The id of ``__consumer_offsets``."""
CLUSTER_ID: Final = "abcdefghijklmnopqrstuv"
SESSION_MS: Final = 350
HEARTBEAT_MS: Final = 60
LAG_MAX_MS: Final = 150
FAULTS_FROM_MS: Final = 900
PEACE_FROM_MS: Final = 6_500
QUIET_FROM_MS: Final = 7_500
"""The end of all writes, so that the logs can be compared."""
END_MS: Final = 10_500


ROOTS: Final = (Path("/logs-1"), Path("/logs-2"))
"""The log directories of each broker, each on a disk of its own."""


def directory_id(broker_id: int, number: int) -> bytes:
    """Return the id of the log directory that a broker has at a place of `ROOTS`."""
    return bytes([0xD0] * 14 + [number, broker_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSettings:
    """What is in a world, how its topic is kept, and how bad its network is."""

    brokers: int
    partitions: int
    replicas: int
    min_insync_replicas: int
    is_elr_enabled: bool
    is_unclean_enabled: bool
    loss: float
    duplication: float
    segment_bytes: int

    @classmethod
    def draw(cls, random: Random) -> WorldSettings:
        """Draw the settings of a world."""
        replicas = random.choice((2, 3, 3))
        return cls(
            brokers=random.randint(3, 5),
            partitions=random.randint(1, 3),
            replicas=replicas,
            min_insync_replicas=random.choice((1, 2, 2, 2)),
            is_elr_enabled=random.random() < 0.7,
            is_unclean_enabled=random.random() < 0.15,
            loss=random.choice((0.0, 0.01, 0.05)),
            duplication=random.choice((0.0, 0.02)),
            segment_bytes=random.choice((1_000, 4_000, 100_000)),
        )

    def place(self, topic_id: bytes, index: int) -> int:
        """Return the number of a partition among those of all topics."""
        return index if topic_id == TOPIC_ID else self.partitions + index

    def partition_at(self, place: int) -> tuple[bytes, int]:
        """Return the topic id and the index of the partition with that number."""
        here = place < self.partitions
        return (TOPIC_ID, place) if here else (OFFSETS_ID, place - self.partitions)

    @property
    def may_lose_power(self) -> bool:
        """Whether Kafka keeps its word where one broker loses what it has not flushed (KIP-966).

        With a minimum of one, the leader alone may have what is committed. Without ELR, the
        controller would let a broker lead that has lost records.
        """
        return self.is_elr_enabled and self.min_insync_replicas > 1

    @property
    def log_config(self) -> TopicLogConfig:
        """The settings of the logs: small segments, and producers may write any timestamps."""
        return TopicLogConfig(
            segments=LogConfig(
                segment_bytes=self.segment_bytes,
                index_interval_bytes=300,
                delete_delay_ms=200,
                is_flushed_on_roll=False,
                may_have_gaps=True,
            ),
            rules=RecordRules(timestamp_before_max_ms=2**62, timestamp_after_max_ms=2**62),
            max_message_bytes=900,
            cleanup=CleanupConfig(),
        )
