"""``reassign``: the target voters written, cancelled, planned, shown and waited for (KIP-642)."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import AdminError, CallFailedError, class_of
from kvorum.cli.admin.quorum_calls import DESCRIBE_QUORUM, QuorumInfo, ReplicaState
from kvorum.cli.admin.reassignment_calls import (
    IS_REASSIGNMENT_WANTED,
    RECORDED_TARGETS,
    RecordedTargets,
    fetch_timeout_call,
    reassign_call,
    set_targets_call,
)
from kvorum.controller import quorum_description as controller
from kvorum.controller.quorum_description import QuorumDescription
from kvorum.controller.quorum_reassignment.next_step import assignment_of
from kvorum.controller.quorum_reassignment.plan import assumed_circumstances, planned_steps
from kvorum.metadata.voters import TargetVoters, VoterKey, voter_key
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.uuid_text import ZERO_UUID

ASSUMED_FETCH_TIMEOUT_MS = 2000
"""Kafka's default of ``controller.quorum.fetch.timeout.ms``, where the leader's is not known."""
UNCHECKED = (
    "The leader is not one of kvorum's: the target voters are recorded as a configuration, "
    "and not checked."
)
NO_REASSIGNMENT = "No reassignment of the quorum is under way."
PAUSE_SECONDS = 0.5
"""Between two looks at the quorum: a client gets no notice of a change."""
UNDESCRIBED_LOOKS = 2
"""Target voters may be written between two calls, and a broker may be behind: look again."""
MISSING_LOOKS = 10
"""A server that is behind does not show what was just written: so many looks have to miss it."""
LOOKS_MAX = 60
"""So many times leaders may change between two calls before something else must be wrong."""


async def start_reassignment(client: AdminClient, targets: TargetVoters) -> None:
    """Make these the target voters, and print them."""
    if any(target.directory_id is not None for target in targets):
        await client.call(set_targets_call(targets))
    else:
        ids = [target.id for target in targets]
        try:
            await client.call(reassign_call(ids))
        except CallFailedError as error:
            _check_ignorance(error)
            await client.call(set_targets_call(targets))
            print(UNCHECKED)
    print(f"The quorum is being reassigned to voters {keys_text(targets)}.")


async def cancel_reassignment(client: AdminClient) -> None:
    """Remove the target voters, and print the voters that there are."""
    try:
        await client.call(reassign_call(None))
    except CallFailedError as error:
        _check_ignorance(error)
        await client.call(set_targets_call(None))
    info = await client.call(DESCRIBE_QUORUM)
    voters = keys_text(map(key_of, info.voters))
    print(f"The reassignment of the quorum is cancelled. The voters are {voters}.")


async def print_reassignment(client: AdminClient) -> None:
    """Print the target voters, the present ones, and what is still to be done."""
    seen = await look(client)
    info = seen.info
    if info.reassignment is None:
        print(NO_REASSIGNMENT if seen.recorded is None else seen.leader_text)
        if seen.recorded is not None:
            text = seen.recorded.text or "hidden by the node that was asked"
            print(f"TargetVoters:           {text}")
            print(f"CurrentVoters:          {keys_text(map(key_of, info.voters))}")
        return
    targets, quorum = targets_of(info.reassignment.targets), description_of(info)
    assignment = assignment_of(targets, quorum)
    present = {(key.id, key.directory_id) for key in assignment.retained}
    adding = [target for target in targets if (target.id, target.directory_id) not in present]
    print(f"TargetVoters:           {keys_text(targets)}")
    print(f"CurrentVoters:          {keys_text(map(key_of, info.voters))}")
    print(f"Adding:                 {keys_text(adding)}")
    print(f"Removing:               {keys_text(assignment.leaving)}")
    if info.reassignment.block_text:
        print(f"WaitsFor:               {info.reassignment.block_text}")


def _check_ignorance(error: CallFailedError) -> None:
    """Raise the error, unless the leader is a real one, which does not know such a partition."""
    if error.failure.class_name != class_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        raise error


async def print_plan(client: AdminClient, targets: TargetVoters) -> None:
    """Print every step to the targets; AdminError if they would be refused or not be reached.

    The leader checks the target voters first, because it knows the registrations. A replica counts
    as fetching by the leader's fetch timeout, or by the default where that is not known.
    """
    await client.call(set_targets_call(targets, is_only_checked=True))
    info = await client.call(DESCRIBE_QUORUM)
    timeout_ms = None
    if client.asks_controllers:
        # A broker, to which calls go otherwise, does not know how the leader is configured.
        timeout_ms = await client.call(fetch_timeout_call(info.leader_id))
    if timeout_ms is None:
        timeout_ms = ASSUMED_FETCH_TIMEOUT_MS
    quorum = description_of(info).without_superseded(within_ms=timeout_ms)
    plan = planned_steps(
        targets, quorum, assumed_circumstances(quorum, fetch_timeout_ms=timeout_ms)
    )
    for number, step in enumerate(plan.steps, 1):
        voters = f"{step.voter_count} voter{'' if step.voter_count == 1 else 's'}"
        silent = f", of which {step.silent_count} do not fetch" if step.silent_count else ""
        print(f"{number}. {step.step}: {voters}{silent}, {step.tolerated_failures} may fail")
    if plan.blocked is not None:
        place = f"stop after step {len(plan.steps)}" if plan.steps else "not begin"
        raise AdminError(f"The reassignment would {place}: {plan.blocked.text}.")
    if not plan.steps:
        print("The voters are the target voters already: there is nothing to do.")


@dataclass(frozen=True, slots=True)
class Look:
    """The quorum, and the target voters if a leader that is not ours does not describe them."""

    info: QuorumInfo
    recorded: RecordedTargets | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether a reassignment of the quorum is wanted."""
        return self.info.reassignment is not None or self.recorded is not None

    @property
    def leader_text(self) -> str:
        """The facts about a leader that does not describe the target voters."""
        return (
            f"A reassignment of the quorum is wanted, and the leader, node {self.info.leader_id}, "
            "is not one of kvorum's and takes no step by itself. A controller of kvorum, if one "
            "runs, has it take them; its log says what it waits for."
        )


async def look(client: AdminClient, *, pause_seconds: float = PAUSE_SECONDS) -> Look:
    """Return the quorum and what is wanted.

    A leader describes the reassignment once its controller is active. Until then the active
    controller, which the second call waits for, is asked whether there is one. A leader that is
    none of kvorum's knows of none either way, and only the record of the target voters remains.
    """
    undescribed_count = 0
    for _ in range(LOOKS_MAX):
        info = await client.call(DESCRIBE_QUORUM)
        if info.reassignment is not None:
            return Look(info)
        if not await client.call(IS_REASSIGNMENT_WANTED):
            recorded = await client.call(RECORDED_TARGETS)
            if recorded is None:
                # The reassignment may have ended between the calls.
                return Look(await client.call(DESCRIBE_QUORUM))
            undescribed_count += 1
            if undescribed_count == UNDESCRIBED_LOOKS:
                return Look(info, recorded)
        await asyncio.sleep(pause_seconds)
    raise AdminError("The leader lists a reassignment of the quorum and does not describe it.")


async def follow_reassignment(
    client: AdminClient, targets: TargetVoters | None, *, pause_seconds: float = PAUSE_SECONDS
) -> bool:
    """Print each change until the reassignment ends; return whether there was one.

    `targets` are the target voters, None if the leader has to name them. Raises AdminError if it
    ends with other voters.
    """
    printed = _Printed()
    was_wanted = False
    missing_count = 0
    while True:
        seen = await look(client, pause_seconds=pause_seconds)
        if not seen.is_wanted:
            missing_count += 1
            voters = [key_of(voter) for voter in seen.info.voters]
            if targets is None or _are_reached(targets, voters) or missing_count == MISSING_LOOKS:
                break
            await asyncio.sleep(pause_seconds)
            continue
        missing_count = 0
        was_wanted = True
        if seen.info.reassignment is not None:
            targets = targets_of(seen.info.reassignment.targets)
        printed.tell(seen)
        await asyncio.sleep(pause_seconds)
    if targets is None and not was_wanted:
        return False
    printed.tell(seen)
    if targets is None:
        print(f"The reassignment has ended with voters {keys_text(voters)}.")
        return True
    if not _are_reached(targets, voters):
        raise AdminError(
            f"The reassignment has ended with voters {keys_text(voters)}: it was cancelled, or the "
            "leader does not know of it."
        )
    print("The quorum has the target voters.")
    return True


def _are_reached(targets: TargetVoters, voters: list[VoterKey]) -> bool:
    wanted = {target.id: target.directory_id for target in targets}
    return wanted.keys() == {key.id for key in voters} and all(
        wanted[key.id] in (None, key.directory_id) for key in voters
    )


class _Printed:
    """The last line that was printed: only changes are."""

    def __init__(self) -> None:
        self._voters: frozenset[VoterKey] | None = None
        self._block_reason = 0
        self._leader_id: int | None = None

    def tell(self, seen: Look) -> None:
        info = seen.info
        voters = [key_of(voter) for voter in info.voters]
        if frozenset(voters) != self._voters:
            self._voters = frozenset(voters)
            print(f"Voters: {keys_text(voters)}", flush=True)
        if seen.recorded is not None and info.leader_id != self._leader_id:
            self._leader_id = info.leader_id
            print(seen.leader_text, flush=True)
        if info.reassignment is None:
            return
        if info.reassignment.block_reason != self._block_reason:
            self._block_reason = info.reassignment.block_reason
            if self._block_reason:
                print(f"Waits: {info.reassignment.block_text}", flush=True)


def description_of(info: QuorumInfo) -> QuorumDescription:
    """Return what the leader knows; ages of fetches are by the leader's clock.

    The voters of a quorum that cannot change have no directories.
    """
    leader = info.leader
    if leader is None:
        raise AdminError("The leader is not among the voters: try again in a moment.")
    is_dynamic = any(voter.directory_id != ZERO_UUID for voter in info.voters)
    return QuorumDescription(
        leader_id=info.leader_id,
        kraft_version=int(is_dynamic),
        may_change=True,
        log_end_offset=leader.log_end_offset,
        voters=tuple(_state_of(one, leader) for one in info.voters),
        observers=tuple(_state_of(one, leader) for one in info.observers),
    )


def key_of(replica: ReplicaState) -> VoterKey:
    """Return the replica's id and directory."""
    return voter_key(replica.replica_id, replica.directory_id)


def targets_of(replicas: Iterable[ReplicaState]) -> TargetVoters:
    """Return the target voters that a leader lists."""
    return tuple(map(key_of, replicas))


def keys_text(keys: Iterable[VoterKey]) -> str:
    """Return replicas as they are printed, "none" for none."""
    return ",".join(map(str, keys)) or "none"


def _state_of(replica: ReplicaState, leader: ReplicaState) -> controller.ReplicaState:
    age_ms = None
    if replica.last_fetch_ms is not None and leader.last_fetch_ms is not None:
        age_ms = float(leader.last_fetch_ms - replica.last_fetch_ms)
    end = replica.log_end_offset
    return controller.ReplicaState(key_of(replica), None if end < 0 else end, age_ms)
