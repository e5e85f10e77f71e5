"""``reassign``: the target voters written, cancelled, shown and planned (KIP-642)."""

from __future__ import annotations

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.error_classes import class_of
from kvorum.cli.admin.errors import AdminError, CallFailedError
from kvorum.cli.admin.quorum_calls import describe_call
from kvorum.cli.admin.reassignment_calls import (
    fetch_timeout_call,
    reassign_call,
    set_targets_call,
)
from kvorum.cli.quorum_tool.quorum_view import description_of, key_of, keys_text, targets_of
from kvorum.cli.quorum_tool.reassign_progress import look
from kvorum.controller.quorum_reassignment.next_step import assignment_of
from kvorum.controller.quorum_reassignment.plan import (
    Plan,
    PlannedStep,
    assumed_circumstances,
    planned_steps,
)
from kvorum.metadata.target_voters import TargetVoters
from kvorum.wire.error_codes import ErrorCode

ASSUMED_FETCH_TIMEOUT_MS = 2000
"""Kafka's default of ``controller.quorum.fetch.timeout.ms``, where the leader's is not known."""
UNCHECKED = (
    "The leader is not one of kvorum's: the target voters are recorded as a configuration, "
    "and not checked."
)
NO_REASSIGNMENT = "No reassignment of the quorum is under way."


async def start_reassignment(
    client: AdminClient, targets: TargetVoters, *, asks_controllers: bool
) -> None:
    """Make these the target voters, and print them."""
    if any(target.directory_id is not None for target in targets):
        await client.call(set_targets_call(targets, asks_controllers=asks_controllers))
    else:
        ids = [target.id for target in targets]
        try:
            await client.call(reassign_call(ids, asks_controllers=asks_controllers))
        except CallFailedError as error:
            _check_ignorance(error)
            await client.call(set_targets_call(targets, asks_controllers=asks_controllers))
            print(UNCHECKED)
    print(f"The quorum is being reassigned to voters {keys_text(targets)}.")


async def cancel_reassignment(client: AdminClient, *, asks_controllers: bool) -> None:
    """Remove the target voters, and print the voters that there are."""
    try:
        await client.call(reassign_call(None, asks_controllers=asks_controllers))
    except CallFailedError as error:
        _check_ignorance(error)
        await client.call(set_targets_call(None, asks_controllers=asks_controllers))
    info = await client.call(describe_call(asks_controllers=asks_controllers))
    voters = keys_text(map(key_of, info.voters))
    print(f"The reassignment of the quorum is cancelled. The voters are {voters}.")


async def print_reassignment(client: AdminClient, *, asks_controllers: bool) -> None:
    """Print the target voters, the present ones, and what is still to be done."""
    seen = await look(client, asks_controllers=asks_controllers)
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


async def print_plan(client: AdminClient, targets: TargetVoters, *, asks_controllers: bool) -> None:
    """Print every step to the targets; AdminError if they would be refused or not be reached.

    The leader checks the target voters first, because it knows the registrations. A replica counts
    as fetching by the leader's fetch timeout, or by the default where that is not known.
    """
    await client.call(
        set_targets_call(targets, asks_controllers=asks_controllers, is_only_checked=True)
    )
    info = await client.call(describe_call(asks_controllers=asks_controllers))
    timeout_ms = None
    if asks_controllers:
        # A broker, to which calls go otherwise, does not know how the leader is configured.
        timeout_ms = await client.call(fetch_timeout_call(info.leader_id))
    if timeout_ms is None:
        timeout_ms = ASSUMED_FETCH_TIMEOUT_MS
    quorum = description_of(info).without_superseded(within_ms=timeout_ms)
    plan = planned_steps(
        targets, quorum, assumed_circumstances(quorum, fetch_timeout_ms=timeout_ms)
    )
    _print_steps(plan)


def _print_steps(plan: Plan) -> None:
    for number, step in enumerate(plan.steps, 1):
        print(f"{number}. {step.step}: {_quorum_text(step)}")
    if plan.blocked is not None:
        place = f"stop after step {len(plan.steps)}" if plan.steps else "not begin"
        raise AdminError(f"The reassignment would {place}: {plan.blocked.text}.")
    if not plan.steps:
        print("The voters are the target voters already: there is nothing to do.")


def _quorum_text(step: PlannedStep) -> str:
    voters = f"{step.voter_count} voter{'' if step.voter_count == 1 else 's'}"
    silent = f", of which {step.silent_count} do not fetch" if step.silent_count else ""
    return f"{voters}{silent}, {step.tolerated_failures} may fail"
