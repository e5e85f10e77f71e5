"""Makes planned faults happen, and undoes them when their time is over."""

from __future__ import annotations

import errno
from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from kvorum.simulation.budget import may_damage, replace_disk
from kvorum.simulation.disk_faults import FileKind
from kvorum.simulation.faults import KINDS, Fault
from kvorum.simulation.network_faults import NetworkFaults
from kvorum.simulation.node import SYNC_OF_MUCH
from kvorum.simulation.operator import Operator

if TYPE_CHECKING:
    from kvorum.simulation.node import SimulatedNode
    from kvorum.simulation.world import World

_DISK_KINDS = (FileKind.LOG, FileKind.SNAPSHOT, FileKind.QUORUM_STATE)
_CALLS_MAX = 60
_SUCH_CALLS_MAX = 6
_CRASHING_OPERATIONS = (
    *(SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH, SYNC_OF_MUCH),
    *("sync", "sync directory", "rename", "write", "truncate", "create"),
)
_SENDS_MAX = 12
_DRIFT_MAX = 0.1
_JUMP_MS_MAX = 30_000


class Injector:
    """Strikes a world with its faults."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._operator = Operator(world)
        network = NetworkFaults(world)
        self._strikes: Mapping[str, Callable[[Fault, Random], None]] = {
            "F1": network.lose,
            "F2": network.double,
            "F3": network.delay,
            "F4": network.clog,
            "F5": network.cut_in_two,
            "F6": network.cut_somehow,
            "F7": network.reset,
            "F8": self._set_crash_point,
            "F9": self._restart,
            "F10": self._pause,
            "F11": self._change_clock,
            "F12": self._cut_power,
            "F15": self._fail_sync,
            "F16": self._refuse_writes,
            "F17": self._flip_bit,
            "F18": self._replace_disk,
            "F19": self._operator.upgrade,
            "F20": self._operator.change_voters,
        }

    def strike(self, fault: Fault) -> None:
        """Let a fault happen."""
        self._world.trace.say(f"fault: {fault.kind}, {KINDS[fault.kind]}")
        self._strikes[fault.kind](fault, Random(fault.seed))  # noqa: S311 - to be repeatable is its use

    def heal(self) -> None:
        """Undo everything, and start what does not run and may."""
        world = self._world
        for node in world.nodes.values():
            node.forget_faults()
            node.resume()
            if node.is_damaged:
                node.crash(is_power_cut=False)
                replace_disk(world, node)
            elif node.process is not None and node.process.is_stopping:
                node.crash(is_power_cut=False)
            if node.process is None:
                node.start()

    def _target(self, fault: Fault) -> SimulatedNode:
        """Return the node that is meant: often the leader."""
        world = self._world
        leader = world.leader()
        if leader is not None and fault.second % 5 < 2:
            return leader
        nodes = list(world.nodes.values())
        return nodes[fault.first % len(nodes)]

    def _later(self, fault: Fault, undo: Callable[[], None]) -> None:
        self._world.events.after(fault.duration_ms, undo)

    def _set_crash_point(self, fault: Fault, random: Random) -> None:
        at_disk = random.random() < 0.8
        operation = random.choice(_CRASHING_OPERATIONS) if random.random() < 0.7 else None
        count_max = _CALLS_MAX if operation is None else _SUCH_CALLS_MAX
        if operation == SYNC_OF_MUCH:
            count_max = 1
        self._target(fault).set_crash_point(
            disk_calls=random.randrange(count_max) if at_disk else None,
            operation=operation,
            sends=None if at_disk else random.randrange(_SENDS_MAX),
            is_power_cut=operation == SYNC_OF_MUCH or random.random() < 0.6,
            restart_ms=float(fault.duration_ms),
        )

    def _restart(self, fault: Fault, random: Random) -> None:
        world = self._world
        node = self._target(fault)
        world.count("F9")
        if random.random() < 0.4:
            node.stop(lambda: self._later(fault, node.start))
            return
        nodes = list(world.nodes.values()) if random.random() < 0.1 else [node]
        for one in nodes:
            one.crash(is_power_cut=False)
            self._later(fault, one.start)

    def _cut_power(self, fault: Fault, random: Random) -> None:
        """Cut the power of one node, or of all at once as in a data centre."""
        world = self._world
        node = self._target(fault)
        if random.random() < 0.15:
            for one in world.nodes.values():
                one.crash(is_power_cut=True)
                self._later(fault, one.start)
            return
        is_scattering = random.random() < 0.15 and may_damage(world, node)
        node.crash(is_power_cut=True, is_scattering=is_scattering)
        self._later(fault, node.start)
        if is_scattering:
            self._repair_later(fault, node)

    def _pause(self, fault: Fault, random: Random) -> None:
        del random
        node = self._target(fault)
        if node.process is None:
            return
        self._world.count("F10")
        node.pause()
        self._later(fault, node.resume)

    def _change_clock(self, fault: Fault, random: Random) -> None:
        world = self._world
        node = self._target(fault)
        world.count("F11")
        if random.random() < 0.5:
            node.clock.set_drift((2 * fault.amount - 1) * _DRIFT_MAX)
        else:
            node.clock.jump_wall(int((2 * fault.amount - 1) * _JUMP_MS_MAX))
        world.trace.say(f"{node.node_id} has another clock")

    def _fail_sync(self, fault: Fault, random: Random) -> None:
        self._target(fault).disk.fail_next_sync([random.choice(_DISK_KINDS)])

    def _refuse_writes(self, fault: Fault, random: Random) -> None:
        node = self._target(fault)
        kinds = [random.choice(_DISK_KINDS)] if random.random() < 0.5 else list(_DISK_KINDS)
        if random.random() < 0.5:
            node.disk.refuse_writes(kinds, error=errno.EIO, calls=1)
        else:
            node.disk.refuse_writes(kinds, error=errno.ENOSPC)
            self._later(fault, node.disk.accept_writes)

    def _flip_bit(self, fault: Fault, random: Random) -> None:
        world = self._world
        node = self._target(fault)
        if not may_damage(world, node):
            return
        if node.disk.flip_bit(random.choice(_DISK_KINDS)) is not None:
            node.damage()
            self._repair_later(fault, node)

    def _repair_later(self, fault: Fault, node: SimulatedNode) -> None:
        """Let somebody replace the disk after a while, unless that has happened already."""

        def repair() -> None:
            if not node.is_damaged:
                return
            node.crash(is_power_cut=False)
            replace_disk(self._world, node)
            node.start()

        self._world.events.after(10_000 + fault.duration_ms, repair)

    def _replace_disk(self, fault: Fault, random: Random) -> None:
        """Take a node's disk away; observers may come back as who they were."""
        world = self._world
        node = self._target(fault)
        if node.is_damaged or not may_damage(world, node):
            return
        node.crash(is_power_cut=True)
        if not node.can_vote and random.random() < 0.5:
            node.wipe(keeps_directory_id=True)
        else:
            replace_disk(world, node)
        self._later(fault, node.start)
