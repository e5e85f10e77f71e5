"""kafka-metadata-quorum describes a quorum of ours that is being reassigned (KIP-642).

The response of DescribeQuorum has a tagged field then that Kafka's schema does not know.
"""

from collections.abc import Iterator

import pytest
from tests.interop.quorum_tools import run_ours, run_real, without_progress
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.node import COMBINED
from tests.support.ports import listens
from tests.support.quorum.quorum import Described, MakeQuorum, registered_controllers
from tests.support.quorum.reassigning import alter

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.quorum_reassignment_tag import reassignment_in

pytestmark = pytest.mark.slow
STATUS = ("describe", "--status")
REPLICATION = ("describe", "--replication")


@pytest.fixture(name="addresses", scope="module")
def a_blocked_reassignment(
    make_quorum: MakeQuorum,
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Options for the broker and the controller of a quorum whose target is stopped."""
    with make_quorum("kvorum", 2) as quorum:
        quorum.configure({"process.roles": COMBINED}, 1)
        broker = quorum.members[1].broker
        quorum.form([1])
        quorum.start()
        quorum.settled(quorum.keys(1), quorum.keys(2))
        controller = quorum.members[1].controller
        quorum.wait_for(lambda: 2 in registered_controllers(controller), "2 is registered")
        quorum.members[2].stop()
        assert alter(controller, (1, 2))[0] == ErrorCode.NONE

        def is_blocked(found: Described) -> bool:
            told = reassignment_in(found)
            return told is not None and "2" in told.block_text

        quorum.until("the reassignment waits for 2", is_blocked)
        quorum.wait_for(lambda: listens(broker), "the broker listens")
        yield ("--bootstrap-server", broker), ("--bootstrap-controller", controller)


def lines(result: ToolResult) -> list[str]:
    assert result.exit_code == 0, result.stderr
    return without_progress(result).stdout.splitlines()


@pytest.mark.parametrize("index", [0, 1], ids=["broker", "controller"])
def test_the_status_is_what_kafkas_tool_tells_with_the_targets_below(
    addresses: tuple[tuple[str, str], ...], index: int, kafka_tools: ToolRunner
) -> None:
    arguments = (*addresses[index], *STATUS)
    ours, theirs = lines(run_ours(arguments)), lines(run_real(arguments, kafka_tools))
    assert ours[: len(theirs)] == theirs
    assert [line.partition(":")[0] for line in ours[len(theirs) :]] == [
        "TargetVoters",
        "ReassignmentWaitsFor",
    ]
    assert '"id": 2' in ours[len(theirs)]


@pytest.mark.parametrize("index", [0, 1], ids=["broker", "controller"])
def test_the_table_is_what_kafkas_tool_tells_but_for_the_target(
    addresses: tuple[tuple[str, str], ...], index: int, kafka_tools: ToolRunner
) -> None:
    arguments = (*addresses[index], *REPLICATION)
    ours, theirs = lines(run_ours(arguments)), lines(run_real(arguments, kafka_tools))
    assert theirs[1].split()[2] == "Leader"
    # A stopped observer is listed for a while, and then only by us.
    mine, real = [line.split() for line in ours], [line.split() for line in theirs]
    assert [row for row in mine if "Target" not in row] == [
        row for row in real if "Observer" not in row
    ]
    assert [row[0] for row in mine if "Target" in row] == ["2"]
