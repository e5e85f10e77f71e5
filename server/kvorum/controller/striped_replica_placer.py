"""The placement of new partitions' replicas: over racks first, then over brokers.

The racks form a ring, and so do the brokers of each rack. Each partition starts one rack and one
broker further than the one before it and takes its replicas from rack after rack. Its first
replica is on an unfenced broker; within a rack unfenced brokers come before fenced ones. The rings
are shuffled after as many partitions as there are unfenced brokers, so that the same brokers do
not always follow each other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from kvorum.controller.broker_heartbeat_manager import BrokerHeartbeatManager
from kvorum.metadata.api import RequestError
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from random import Random


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may be assigned replicas."""

    id: int
    rack: str | None
    is_fenced: bool


def usable_brokers(cluster: ClusterImage, sessions: BrokerHeartbeatManager) -> list[UsableBroker]:
    """Return the brokers that may be assigned replicas, in order of id.

    Brokers that are shutting down, or whose log directories are all cordoned, are left out.
    """
    return [
        UsableBroker(broker.id, broker.rack, broker.is_fenced)
        for broker in cluster.sorted_brokers()
        if broker.has_uncordoned_directory and not sessions.session(broker.id).is_shutting_down
    ]


class Racks:
    """The brokers by rack, sorted once for the partitions of many topics."""

    def __init__(self, brokers: Iterable[UsableBroker]) -> None:
        by_name: dict[str | None, tuple[list[int], list[int]]] = {}
        for broker in sorted(brokers, key=lambda broker: broker.id):
            unfenced, fenced = by_name.setdefault(broker.rack, ([], []))
            (fenced if broker.is_fenced else unfenced).append(broker.id)
        # Brokers without a rack form one rack, which comes first.
        names = sorted(by_name, key=lambda name: (name is not None, name or ""))
        self.brokers = [by_name[name] for name in names]
        self.unfenced_count = sum(len(unfenced) for unfenced, _ in self.brokers)
        self.broker_count = self.unfenced_count + sum(len(fenced) for _, fenced in self.brokers)

    def place(
        self, *, partition_count: int, replication_factor: int, random: Random
    ) -> list[list[int]]:
        """Return the replicas of each of `partition_count` partitions of one topic.

        Raises `RequestError` INVALID_REPLICATION_FACTOR where that many replicas cannot be placed.
        """
        self._check(replication_factor)
        placer = _Placer(self, random)
        return [placer.place(replication_factor) for _ in range(partition_count)]

    def _check(self, replication_factor: int) -> None:
        if replication_factor <= 0:
            raise _refusal(
                f"Invalid replication factor {replication_factor}: "
                "the replication factor must be positive."
            )
        if not self.unfenced_count:
            raise _refusal(
                "All brokers are currently fenced, or have all their log directories cordoned."
            )
        if replication_factor > self.broker_count:
            raise _refusal(
                f"The target replication factor of {replication_factor} cannot be reached "
                f"because only {self.broker_count} broker(s) are registered or some brokers "
                "have all their log directories cordoned."
            )


class _Ring:
    """The fenced or the unfenced brokers of a rack, taken in turn and each once per partition."""

    def __init__(self, brokers: list[int], random: Random) -> None:
        self.brokers = list(brokers)
        self._start = random.randrange(len(brokers)) if brokers else 0
        self._taken_count = 0

    def start_partition(self) -> None:
        """Start the next partition; a ring that was used for the last one starts one further."""
        if self._taken_count:
            self._start = (self._start + 1) % len(self.brokers)
        self._taken_count = 0

    def take(self) -> int | None:
        """Return the next broker, or None if all are taken for this partition."""
        if self._taken_count >= len(self.brokers):
            return None
        broker = self.brokers[(self._start + self._taken_count) % len(self.brokers)]
        self._taken_count += 1
        return broker


class _Rack(NamedTuple):
    """The brokers of a rack."""

    unfenced: _Ring
    fenced: _Ring

    def take(self) -> int | None:
        """Return the next broker, an unfenced one if any is left."""
        broker = self.unfenced.take()
        return self.fenced.take() if broker is None else broker


class _Placer:
    """A placer of partitions, one after the other."""

    def __init__(self, racks: Racks, random: Random) -> None:
        self._random = random
        self._unfenced_count = racks.unfenced_count
        self._racks = [
            _Rack(_Ring(unfenced, random), _Ring(fenced, random))
            for unfenced, fenced in racks.brokers
        ]
        self._start = random.randrange(len(self._racks))
        self._placed_count = 0

    def place(self, replication_factor: int) -> list[int]:
        """Return the replicas of the next partition."""
        if self._placed_count == self._unfenced_count and self._unfenced_count > 1:
            self._shuffle()
        for ring in itertools.chain(*self._racks):
            ring.start_partition()
        first_rack, first = self._take_first()
        replicas = [first, *self._take_others(first_rack, replication_factor - 1)]
        self._placed_count += 1
        self._start = (self._start + 1) % len(self._racks)
        return replicas

    def _take_first(self) -> tuple[int, int]:
        for step in range(len(self._racks)):
            index = (self._start + step) % len(self._racks)
            broker = self._racks[index].unfenced.take()
            if broker is not None:
                return index, broker
        raise AssertionError("an unfenced broker was counted, but no rack has one")

    def _take_others(self, first_rack: int, count: int) -> list[int]:
        """Return `count` brokers from rack after rack; the first round omits `first_rack`."""
        others: list[int] = []
        index = self._start
        skip_rack: int | None = first_rack
        while len(others) < count:
            if index == skip_rack:
                skip_rack = None
            else:
                broker = self._racks[index].take()
                if broker is not None:
                    others.append(broker)
            index = (index + 1) % len(self._racks)
        return others

    def _shuffle(self) -> None:
        self._random.shuffle(self._racks)
        for ring in itertools.chain(*self._racks):
            self._random.shuffle(ring.brokers)
        self._placed_count = 0


def _refusal(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REPLICATION_FACTOR, message)
