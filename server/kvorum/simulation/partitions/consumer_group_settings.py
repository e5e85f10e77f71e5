"""The settings of a group of the consumer protocol (KIP-848), drawn for a part of the worlds."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from kvorum.groups.settings import ConsumerGroupSettings

_SESSIONS_MS: Final = (400, 1_000)
_REBALANCE_TIMEOUTS_MS: Final = (250, 600)
_ASSIGNMENT_INTERVALS_MS: Final = (0, 0, 150)
_ASSIGNORS: Final = (None, "uniform", "range")
_STRIKES_MS: Final = (140, 300, 900)
_HEARTBEAT_MS: Final = 40
_TIMES_MS: Final = 10, 10_000
"""The bounds within which the groups of a world may have their times."""
_UNLIMITED: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConsumerGroupSettings:
    """Times in milliseconds; `size_max` is ``group.consumer.max.size``.

    All members have one rebalance timeout, and ask for one assignor if for any: where two have as
    many votes each, Kafka prefers now one and now the other, and begins an epoch each time.
    """

    members: int
    size_max: int
    session_timeout_ms: int
    rebalance_timeout_ms: int
    assignment_interval_ms: int
    assignor: str | None
    strike_ms: int
    """The mean time from one fault to the next: a rebalance takes a while without any."""

    @classmethod
    def draw(cls, random: Random) -> ClusterConsumerGroupSettings:
        """Draw the settings of the group of a cluster."""
        members = random.randint(2, 4)
        return cls(
            members=members,
            size_max=random.choice((members, _UNLIMITED)),
            session_timeout_ms=random.choice(_SESSIONS_MS),
            rebalance_timeout_ms=random.choice(_REBALANCE_TIMEOUTS_MS),
            assignment_interval_ms=random.choice(_ASSIGNMENT_INTERVALS_MS),
            assignor=random.choice(_ASSIGNORS),
            strike_ms=random.choice(_STRIKES_MS),
        )

    @property
    def of_broker(self) -> ConsumerGroupSettings:
        """The settings of the brokers."""
        least_ms, most_ms = _TIMES_MS
        return ConsumerGroupSettings(
            session_timeout_ms=self.session_timeout_ms,
            session_timeout_ms_min=least_ms,
            session_timeout_ms_max=most_ms,
            heartbeat_interval_ms=_HEARTBEAT_MS,
            heartbeat_interval_ms_min=least_ms,
            heartbeat_interval_ms_max=most_ms,
            assignment_interval_ms=self.assignment_interval_ms,
            max_size=self.size_max,
        )
