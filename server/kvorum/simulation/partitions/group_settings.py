"""The settings of a world's groups: what their brokers keep to, and what their members ask for."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from kvorum.groups.classic_group.group import CONSUMER_PROTOCOL_TYPE
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.node.config import GroupSettings, OffsetsTopicSettings
from kvorum.wire.records import Compression

SESSION_TIMEOUT_MS: Final = 400
STATIC_SESSION_TIMEOUT_MS: Final = 1_200
"""Static members have longer sessions, so that they can be started again within one (KIP-345)."""
COMMIT_TIMEOUT_MS: Final = 200
RESTLESS_UNTIL_MS: Final = 8_500
"""The end of what members do unasked: after it they only settle."""
SHORT_REBALANCE_MS_MAX: Final = 1_000
METADATA_BYTES_MAX: Final = 64
_UNLIMITED: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWorldSettings:
    """Times in milliseconds; `size_max` is ``group.max.size``.

    Members ask for one of `rebalance_timeouts_ms`, those without an instance id for the first.
    """

    members: int
    size_max: int
    protocol_type: str
    rebalance_timeouts_ms: tuple[int, ...]
    retention_ms: int
    retention_check_ms: int

    @classmethod
    def draw(cls, random: Random) -> GroupWorldSettings:
        """Draw the settings of a world."""
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
        return GroupSettings(
            coordinator=GroupCoordinatorSettings(
                group_max_size=self.size_max,
                group_initial_rebalance_delay_ms=50,
                offset_metadata_max_bytes=METADATA_BYTES_MAX,
                offsets_retention_ms=self.retention_ms,
                offsets_retention_check_interval_ms=self.retention_check_ms,
            ),
            session_timeout_ms_min=100,
            session_timeout_ms_max=10_000,
            commit_timeout_ms=COMMIT_TIMEOUT_MS,
            topic=OffsetsTopicSettings(1, 3, 1 << 20, Compression.NONE),
        )
