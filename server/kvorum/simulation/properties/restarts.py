"""The stops and starts of nodes: P8, P20, P21, P27."""

from random import Random
from typing import NamedTuple

from kvorum.node.raft.opened_directory import open_directory
from kvorum.raft.election_record import ElectionRecord
from kvorum.raft.voter_set import VoterSet
from kvorum.simulation.disk import SimulatedDisk
from kvorum.simulation.properties.catalogue import P8, P20, P21, P27, Checks
from kvorum.simulation.properties.node_facts import NodeMemory
from kvorum.storage.errors import StorageError
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.valid_offset_and_epoch import EpochStart


class _Found(NamedTuple):
    """The contents of a directory when it is opened."""

    start_offset: int
    end_offset: int
    epoch_starts: tuple[EpochStart, ...]
    snapshots: tuple[OffsetAndEpoch, ...]
    stored: ElectionRecord | None
    voters: VoterSet
    kraft_version: int


class Restarts:
    """The checks of starts: each is tried first on a copy of the disk.

    `random` is the properties' own generator, so that a trial does not change the world.
    """

    def __init__(self, checks: Checks, random: Random) -> None:
        self._checks = checks
        self._random = random

    def rehearse(self, memory: NodeMemory) -> None:
        """Open a copy of the disk twice, with a power cut in between: P8.

        A damaged disk may be refused, but only by an error of the storage: P21.
        """
        disk = memory.node.disk.copy(self._random)
        try:
            first = self._open(memory, disk)
            disk.crash(is_power_cut=True)
            second = self._open(memory, disk)
        except StorageError as error:
            checked = P21 if memory.is_damaged else P8
            text = f"{memory.name} cannot start again: {error}"
            self._checks.demand(checked, text, holds=memory.is_damaged)
            return
        end = first.end_offset
        text = f"{memory.name}'s log ends at {end}, below {memory.high_watermark}"
        self._checks.demand(P27, text, holds=memory.is_damaged or end >= memory.high_watermark)
        text = f"{memory.name} finds {first} when it starts, and {second} the next time"
        self._checks.demand(P8, text, holds=first == second)

    def _open(self, memory: NodeMemory, disk: SimulatedDisk) -> _Found:
        opened = open_directory(memory.node.settings, files=disk.mount(), now_ms=0)
        log = opened.log
        return _Found(
            start_offset=log.log_start_offset,
            end_offset=log.log_end_offset,
            epoch_starts=log.local_log.epoch_starts,
            snapshots=tuple(log.snapshots.ids()),
            stored=opened.stored,
            voters=opened.history.voters,
            kraft_version=opened.history.kraft_version,
        )

    def started(self, memory: NodeMemory) -> None:
        """Demand that a node which has started still has its durable records: P21.

        A log that a snapshot has replaced is excepted.
        """
        core = memory.node.core
        if core is None:
            return
        log, stored = core.log, memory.election
        is_there = log.end_offset >= memory.promise or log.start_offset == log.end_offset
        text = f"{memory.name} starts with a log to {log.end_offset}; "
        text += f"{memory.promise} was durable"
        self._checks.demand(P21, text, holds=is_there)
        text = f"{memory.name} starts in epoch {core.role.epoch} and had stored {stored}"
        self._checks.demand(P21, text, holds=core.role.epoch >= stored.epoch)

    def refused(self, memory: NodeMemory, error: Exception) -> None:
        """Check a failed start: only a damaged or failing disk excuses it, by a StorageError."""
        text = f"{memory.name} does not start: {error!r}"
        self._checks.demand(
            P21, text, holds=isinstance(error, StorageError) and _is_excused(memory)
        )

    def failed(self, memory: NodeMemory, error: Exception) -> None:
        """Check a replica that has stopped itself: its disk may cause that, no message may."""
        text = f"{memory.name} has stopped: {error!r}"
        self._checks.demand(
            P20, text, holds=isinstance(error, StorageError) and _is_excused(memory)
        )


def _is_excused(memory: NodeMemory) -> bool:
    return memory.is_excused or memory.is_damaged
