"""Steps in place of a leader that does not act on the target voters (KIP-642)."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import pytest
from tests.node.played_leader import PlayedLeader
from tests.support.waiting import PATIENCE_S

from kvorum.node.controller.quorum_reassignment_proxy import QuorumReassignmentProxy
from kvorum.node.tasks import run
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterRequest
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.primitives import Message

LOOKS = 5
"""More looks than any controller among six lets others act first."""


@asynccontextmanager
async def working(*proxies: QuorumReassignmentProxy) -> AsyncGenerator[list[asyncio.Task[None]]]:
    """Let proxies take steps; they end with the context, and must not have failed."""
    tasks = [asyncio.create_task(run(one.take_steps())) for one in proxies]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(one is None or isinstance(one, asyncio.CancelledError) for one in ended), ended


@contextmanager
def told(caplog: pytest.LogCaptureFixture) -> Generator[list[str]]:
    """Collect what is logged about the reassignment."""
    lines: list[str] = []
    with caplog.at_level(logging.INFO, logger="kvorum"):
        yield lines
    lines += [record.getMessage() for record in caplog.records]


async def test_the_leader_is_asked_for_each_step_and_goes_last() -> None:
    async with PlayedLeader() as leader:
        leader.want("4,5,6")
        async with asyncio.timeout(PATIENCE_S):
            await run(leader.proxy(1).take_steps())
    # Of two removals the one with the higher id comes first; the leader, 2, is left to the end.
    assert leader.steps == [
        "add 4", "remove 3", "add 5", "remove 1", "add 6", "remove 2", "clear",
    ]  # fmt: skip
    assert leader.refused == []


async def test_a_leader_that_acts_itself_is_asked_once_and_left_alone() -> None:
    async with PlayedLeader(acts_itself=True) as leader, PlayedLeader() as other:
        leader.want("1,2,4")
        other.want("1,2,3,4")
        behind = other.replica(1)
        behind.epochs_behind = 1
        proxy = leader.proxy(1)
        async with working(proxy, other.proxy(1, behind)):
            await leader.until(lambda: leader.node.times_asked("DescribeQuorum") == 1)
            # A leader whose answers are no ground for a step is asked so often meanwhile.
            await other.until_asked(LOOKS)
            assert proxy.describe("1,2,4") is None
        assert leader.node.times_asked("DescribeQuorum") == 1
        assert leader.steps == []


async def test_a_new_leader_is_asked_again() -> None:
    async with PlayedLeader(acts_itself=True) as leader:
        leader.want("1,2,3,4")
        async with working(leader.proxy(1)):
            await leader.until(lambda: leader.node.times_asked("DescribeQuorum") == 1)
            leader.acts_itself = False
            leader.epoch += 1
            await leader.until(lambda: leader.steps == ["add 4", "clear"])


async def test_an_answer_of_another_epoch_is_not_a_ground_for_a_step() -> None:
    async with PlayedLeader() as leader:
        leader.want("1,2,3,4")
        replica = leader.replica(1)
        replica.epochs_behind = 1
        async with working(leader.proxy(1, replica)):
            await leader.until_asked(LOOKS)
        assert leader.steps == []


async def test_two_take_each_step_once() -> None:
    async with PlayedLeader() as leader:
        leader.want("4,5,6")
        async with working(leader.proxy(1), leader.proxy(4), leader.proxy(6)) as tasks:
            await asyncio.wait(tasks, timeout=PATIENCE_S)
    assert (leader.voters, leader.refused) == ({4, 5, 6}, [])
    assert len(leader.steps) == len(set(leader.steps)) == 7


async def test_who_has_taken_a_step_takes_the_next_one_with_the_next_answer() -> None:
    async with PlayedLeader() as leader:
        leader.want("2")
        async with asyncio.timeout(PATIENCE_S):
            await run(leader.proxy(1).take_steps())
    asked = [request.NAME.removesuffix("Request") for request in leader.node.asked]
    assert asked[asked.index("RemoveRaftVoter") :] == [
        "RemoveRaftVoter", "DescribeQuorum", "RemoveRaftVoter", "DescribeQuorum",
        "IncrementalAlterConfigs",
    ]  # fmt: skip


async def test_the_next_goes_on_where_one_ends() -> None:
    async with PlayedLeader() as leader:
        leader.want("4,5,6")
        async with working(leader.proxy(4)):
            async with working(leader.proxy(1)):
                await leader.until(lambda: len(leader.steps) == 2)
            await leader.until(lambda: leader.steps[-1] == "clear")
    assert (leader.voters, leader.refused) == ({4, 5, 6}, [])
    assert len(leader.steps) == len(set(leader.steps)) == 7


async def test_no_step_is_taken_while_the_image_lacks_what_the_leader_has_committed() -> None:
    async with PlayedLeader() as leader:
        leader.want("1,2")
        leader.uncommitted = 1
        async with working(leader.proxy(1)):
            await leader.until_asked(LOOKS)
            assert leader.steps == []
            # The missing target voters replace the others.
            leader.uncommitted = 0
            leader.want("2,3")
            await leader.until(lambda: leader.steps == ["remove 1", "clear"])


async def test_no_step_is_taken_until_the_voters_are_committed_here() -> None:
    async with PlayedLeader() as leader:
        leader.want("1,2,3,4")
        replica = leader.replica(1)
        replica.has_committed_voters = False
        async with working(leader.proxy(1, replica)):
            await leader.until_asked(LOOKS)
            assert leader.steps == []
            replica.has_committed_voters = True
            await leader.until(lambda: leader.steps == ["add 4", "clear"])


async def test_no_majority_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    async with PlayedLeader(silent={3}) as leader:
        leader.want("2,3")
        proxy = leader.proxy(1)
        with told(caplog) as lines:
            async with working(proxy):
                await leader.until_asked(3 * LOOKS)
                described = proxy.describe("2,3")
        assert leader.steps == []
    assert described is not None
    assert "without voter 1" in described.block_text
    assert (described.adding_count, described.removing_count) == (0, 1)
    waits = [line for line in lines if "The reassignment of the quorum waits" in line]
    assert len(waits) == 1
    assert "no majority would be fetching" in waits[0]


async def test_a_target_that_is_refused_lets_another_go_first(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with PlayedLeader() as leader:
        leader.answer = lambda request: (
            ErrorCode.REQUEST_TIMED_OUT
            if isinstance(request, AddRaftVoterRequest) and request.voter_id == 4
            else ErrorCode.NONE
        )
        leader.want("1,2,3,4,5")
        with told(caplog) as lines:
            async with working(leader.proxy(1)):
                await leader.until(lambda: leader.steps == ["add 5"] and len(leader.refused) > 1)
                leader.answer = lambda _: ErrorCode.NONE
                await leader.until(lambda: leader.steps == ["add 5", "add 4", "clear"])
    assert leader.refused[0] == "add 4"
    assert any("the leader refuses to add voter 4" in line for line in lines)
    assert any('place of its leader leader=2 target_voters=1,2,3,4,5 step="add' in x for x in lines)


def looks_between_steps(leader: PlayedLeader) -> int:
    """Return how often the leader was asked for the quorum between the first two steps."""
    names = [request.NAME for request in leader.node.asked]
    first = names.index("AddRaftVoterRequest")
    second = names.index("AddRaftVoterRequest", first + 1)
    return names[first:second].count("DescribeQuorumRequest")


@pytest.mark.parametrize("code", [ErrorCode.DUPLICATE_VOTER, ErrorCode.REQUEST_TIMED_OUT])
async def test_after_a_refusal_others_have_their_turn(code: ErrorCode) -> None:
    """A refused controller waits as at first: another one may have been quicker, and go on."""
    async with PlayedLeader() as leader:
        leader.want("1,2,3,4")
        leader.answer = lambda _: code
        async with working(leader.proxy(1)):
            await leader.until(lambda: len(leader.refused) == 2)
        assert looks_between_steps(leader) >= 2


async def test_after_a_step_without_an_answer_others_have_their_turn() -> None:
    """A leader that hangs up may have taken the step, and is asked again as at first."""
    async with PlayedLeader() as leader:
        leader.want("1,2,3,4")
        leader.node.answer("AddRaftVoter", lambda _: None)
        async with working(leader.proxy(1)):
            await leader.until(lambda: leader.node.times_asked("AddRaftVoter") == 2)
        assert looks_between_steps(leader) >= 2


async def test_a_refusal_is_reported_once_and_shown_until_the_step_is_taken(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The clearing is refused at last: the target voters stay although all of them are there."""
    async with PlayedLeader() as leader:
        leader.want("1,2,3")
        leader.answer = lambda _: ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        proxy = leader.proxy(1)

        def block_text() -> str:
            described = proxy.describe("1,2,3")
            assert described is not None
            return described.block_text

        with told(caplog) as lines:
            async with working(proxy):
                await leader.until(lambda: len(leader.refused) == 1)
                await leader.until_asked(1)
                shown = block_text()
                await leader.until(lambda: len(leader.refused) == 3)
                assert block_text() == shown
                leader.answer = lambda _: ErrorCode.NONE
                await leader.until(lambda: leader.steps == ["clear"])
    assert shown.startswith("the leader refuses to clear the target voters")
    assert {*leader.refused} == {"clear"}
    assert len(lines) == 2, lines


async def test_a_leader_that_tells_nothing_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with PlayedLeader() as leader:
        leader.want("1,2,3,4")
        asked = asyncio.Event()

        def refuse(request: Message) -> Message:
            asked.set()
            return DescribeQuorumResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

        leader.node.answer("DescribeQuorum", refuse)
        with told(caplog) as lines:
            async with working(leader.proxy(1)):
                await asked.wait()
                leader.node.answer("DescribeQuorum", leader.describe)
                await leader.until(lambda: leader.steps == ["add 4", "clear"])
    assert sum("the leader refuses to describe the quorum: error 31" in x for x in lines) == 1


async def test_it_ends_when_this_node_leads() -> None:
    async with PlayedLeader(silent={3}) as leader:
        leader.want("2,3")
        replica = leader.replica(1)
        async with working(leader.proxy(1, replica)) as tasks:
            await leader.until_asked(1)
            replica.is_leader = True
            await asyncio.wait_for(tasks[0], PATIENCE_S)
