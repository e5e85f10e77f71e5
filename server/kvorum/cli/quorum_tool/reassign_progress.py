"""``reassign --wait``: the progress of a reassignment, until it ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.quorum_calls import QuorumInfo, describe_call
from kvorum.cli.admin.reassignment_calls import (
    RecordedTargets,
    is_wanted_call,
    recorded_targets_call,
)
from kvorum.cli.quorum_tool.quorum_view import key_of, keys_text, targets_of
from kvorum.metadata.target_voters import TargetVoters
from kvorum.metadata.voter_key import VoterKey

PAUSE_SECONDS = 0.5
"""Between two looks at the quorum: a client gets no notice of a change."""
UNDESCRIBED_LOOKS = 2
"""Target voters may be written between two calls, and a broker may be behind: look again."""
MISSING_LOOKS = 10
"""A server that is behind does not show what was just written: so many looks have to miss it."""
LOOKS_MAX = 60
"""So many times leaders may change between two calls before something else must be wrong."""


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


async def look(
    client: AdminClient, *, asks_controllers: bool, pause_seconds: float = PAUSE_SECONDS
) -> Look:
    """Return the quorum and what is wanted.

    A leader describes the reassignment once its controller is active. Until then the active
    controller, which the second call waits for, is asked whether there is one. A leader that is
    none of kvorum's knows of none either way, and only the record of the target voters remains.
    """
    undescribed_count = 0
    for _ in range(LOOKS_MAX):
        info = await client.call(describe_call(asks_controllers=asks_controllers))
        if info.reassignment is not None:
            return Look(info)
        if not await client.call(is_wanted_call(asks_controllers=asks_controllers)):
            recorded = await client.call(recorded_targets_call())
            if recorded is None:
                # The reassignment may have ended between the calls.
                return Look(await client.call(describe_call(asks_controllers=asks_controllers)))
            undescribed_count += 1
            if undescribed_count == UNDESCRIBED_LOOKS:
                return Look(info, recorded)
        await asyncio.sleep(pause_seconds)
    raise AdminError("The leader lists a reassignment of the quorum and does not describe it.")


async def follow_reassignment(
    client: AdminClient,
    targets: TargetVoters | None,
    *,
    asks_controllers: bool,
    pause_seconds: float = PAUSE_SECONDS,
) -> bool:
    """Print each change until the reassignment ends; return whether there was one.

    `targets` are the target voters, None if the leader has to name them. Raises AdminError if it
    ends with other voters.
    """
    printed = _Printed()
    was_wanted = False
    missing_count = 0
    while True:
        seen = await look(client, asks_controllers=asks_controllers, pause_seconds=pause_seconds)
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
