"""``reassign --wait``: the progress of a reassignment, until it ends."""

from __future__ import annotations

import asyncio

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import AdminError
from kvorum.cli.admin.quorum_calls import QuorumInfo, describe_call
from kvorum.cli.admin.reassignment_calls import is_wanted_call
from kvorum.cli.quorum_tool.quorum_view import key_of, keys_text, targets_of
from kvorum.metadata.target_voters import TargetVoters
from kvorum.metadata.voter_key import VoterKey

PAUSE_SECONDS = 0.5
"""Between two looks at the quorum: a client gets no notice of a change."""
LOOKS_MAX = 60
"""So many times leaders may change between two calls before something else must be wrong."""


async def look(
    client: AdminClient, *, asks_controllers: bool, pause_seconds: float = PAUSE_SECONDS
) -> QuorumInfo:
    """Return the quorum; `reassignment` is None in it only while none is wanted.

    A leader describes the reassignment once its controller is active. Until then the active
    controller, which the second call waits for, is asked whether there is one.
    """
    for _ in range(LOOKS_MAX):
        info = await client.call(describe_call(asks_controllers=asks_controllers))
        if info.reassignment is not None:
            return info
        if not await client.call(is_wanted_call(asks_controllers=asks_controllers)):
            # The reassignment may have ended between the two calls.
            return await client.call(describe_call(asks_controllers=asks_controllers))
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

    `targets` are those of the wish, None if the leader has to name them. Raises AdminError if it
    ends with other voters.
    """
    told = _Told()
    while True:
        info = await look(client, asks_controllers=asks_controllers, pause_seconds=pause_seconds)
        if info.reassignment is None:
            break
        targets = targets_of(info.reassignment.targets)
        told.tell(info)
        await asyncio.sleep(pause_seconds)
    if targets is None:
        return False
    told.tell(info)
    voters = [key_of(voter) for voter in info.voters]
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


class _Told:
    """What has been printed: only changes are."""

    def __init__(self) -> None:
        self._voters: frozenset[VoterKey] | None = None
        self._block_reason = 0

    def tell(self, info: QuorumInfo) -> None:
        voters = [key_of(voter) for voter in info.voters]
        if frozenset(voters) != self._voters:
            self._voters = frozenset(voters)
            print(f"Voters: {keys_text(voters)}", flush=True)
        if info.reassignment is None:
            return
        if info.reassignment.block_reason != self._block_reason:
            self._block_reason = info.reassignment.block_reason
            if self._block_reason:
                print(f"Waits: {info.reassignment.block_text}", flush=True)
