"""Somebody who changes the voters, upgrades kraft.version, and asks leaders to give way."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, TypeVar

from kvorum.raft import KRaftVersionUpgradeError, ReplicaKey, StaleEpochError, VoterSet
from kvorum.simulation.budget import may_become
from kvorum.simulation.faults import Fault
from kvorum.simulation.transport import Reply
from kvorum.simulation.versions import Release, common_version
from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.messages.add_raft_voter import (
    AddRaftVoterRequest,
    AddRaftVoterRequestListener,
    AddRaftVoterResponse,
)
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

if TYPE_CHECKING:
    from kvorum.simulation.node import SimulatedNode
    from kvorum.simulation.world import World

OPERATOR_ID = -100
_TIMEOUT_MS = 30_000
_RESIGN_SHARE = 0.15
_Answer = TypeVar("_Answer", AddRaftVoterResponse, RemoveRaftVoterResponse)


class Operator:
    """Asks whoever leads; what comes of it is only looked at, as a person would."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._number = 0

    def upgrade(self, fault: Fault, random: Random) -> None:
        """Upgrade kraft.version, now and, as long as it is refused, again."""
        world = self._world
        leader = world.leader()
        if not world.is_safety_phase:
            return
        if (
            leader is None
            or leader.process is None
            or leader.process.application.leading_epoch is None
        ):
            world.events.after(2_000.0, lambda: self.upgrade(fault, random))
            return
        leader.process.turn(lambda: self._upgrade(leader, fault, random))

    def _upgrade(self, leader: SimulatedNode, fault: Fault, random: Random) -> None:
        process = leader.process
        if process is None:
            return
        driver = process.driver
        world = self._world
        try:
            is_new, effects = driver.core.upgrade_kraft_version(
                driver.now(), epoch=driver.core.role.epoch, kraft_version=1, validate_only=False
            )
        except (KRaftVersionUpgradeError, StaleEpochError) as error:
            world.trace.say(f"{leader.node_id} refuses kraft.version 1: {error}")
            world.events.after(5_000.0, lambda: self.upgrade(fault, random))
            return
        if is_new:
            world.count("F19")
            world.trace.say(f"{leader.node_id} goes to kraft.version 1")
        driver.run(effects)

    def change_voters(self, fault: Fault, random: Random) -> None:
        """Let a leader resign, or add or remove a voter where that is safe to ask for."""
        world = self._world
        leader = world.leader()
        if leader is None or leader.process is None:
            return
        if random.random() < _RESIGN_SHARE:
            self._resign(leader)
            return
        if leader.process.driver.core.history.kraft_version < 1:
            return
        wanted = self._choose(leader.voters, random)
        if wanted is None:
            return
        world.count("F20")
        target, verb = wanted
        asked = list(world.nodes.values())[fault.first % len(world.nodes)]
        verb(leader if random.random() < 0.9 else asked, target, random)

    def _resign(self, leader: SimulatedNode) -> None:
        process = leader.process
        if process is not None:
            driver = process.driver
            self._world.trace.say(f"{leader.node_id} is asked to resign")
            process.turn(
                lambda: driver.call(
                    lambda: driver.core.resign(driver.now(), epoch=driver.core.role.epoch)
                )
            )

    def _choose(
        self, voters: VoterSet, random: Random
    ) -> tuple[ReplicaKey, Callable[[SimulatedNode, ReplicaKey, Random], None]] | None:
        """Choose whom to remove or add: first of all a voter whose disk is gone."""
        world = self._world
        gone = [
            voter.key
            for voter in voters.voters
            if voter.key.id in world.nodes and not voter.is_replica(world.nodes[voter.key.id].key)
        ]
        if gone:
            return random.choice(gone), self._remove
        new = [
            node.key
            for node in world.nodes.values()
            if node.can_vote
            and not (node.is_barred or node.is_damaged)
            and voters.by_id(node.node_id) is None
        ]
        old = [
            voter.key for voter in voters.voters if may_become(world, voters.without(voter.key.id))
        ]
        if new and (not old or random.random() < 0.6):
            return random.choice(new), self._add
        return (random.choice(old), self._remove) if old else None

    def _add(self, asked: SimulatedNode, target: ReplicaKey, random: Random) -> None:
        world = self._world
        node = world.nodes[target.id]
        world.trace.say(f"operator asks {asked.node_id} to add voter {target.id}")
        world.properties.operator_asked_to_add(node.node_id, node.directory_id)
        request = AddRaftVoterRequest(
            cluster_id=world.cluster_id,
            timeout_ms=_TIMEOUT_MS,
            voter_id=target.id,
            voter_directory_id=node.directory_id,
            listeners=[AddRaftVoterRequestListener("CONTROLLER", node.host, 9093)],
        )
        version = common_version(AddRaftVoterRequest, Release.LATEST, asked.release)
        if version >= 1:
            request.ack_when_committed = random.random() < 0.7
        self._ask(asked, request, AddRaftVoterResponse, version=version)

    def _remove(self, asked: SimulatedNode, target: ReplicaKey, random: Random) -> None:
        del random
        world = self._world
        world.trace.say(f"operator asks {asked.node_id} to remove voter {target.id}")
        request = RemoveRaftVoterRequest(
            cluster_id=world.cluster_id,
            voter_id=target.id,
            voter_directory_id=target.directory_id or bytes(16),
        )
        self._ask(asked, request, RemoveRaftVoterResponse, version=0)

    def _ask(
        self, asked: SimulatedNode, request: Message, kind: type[_Answer], *, version: int
    ) -> None:
        world = self._world
        self._number += 1
        frame = encode_request_frame(
            request, version=version, correlation_id=self._number, client_id="operator"
        )

        def take(reply: Reply) -> None:
            if isinstance(reply, bytes):
                answer = decode_response_frame(reply, response_class=kind, version=version)[1]
                text = f"error {answer.error_code} {answer.error_message or ''}".rstrip()
            else:
                text = str(reply)
            world.trace.say(f"operator hears from {asked.node_id}: {text}")

        world.carry_request(OPERATOR_ID, asked.host, frame, take)
