"""A stream over a quorum whose every voter is replaced: each committed record once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.interop.quorum_tools import run_ours, run_real
from tests.interop.stream_rows import check, read_on, rows_of, stream_over, writing
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.quorum.quorum import MakeQuorum, Quorum, registered_controllers

from kvorum.spark.errors import QuorumError

pytestmark = pytest.mark.slow
FIRST = 1
LATER: dict[str, tuple[int, ...]] = {"kvorum": (2, 3, 4), "kafka": (2,)}


@pytest.fixture(params=["kvorum", "kafka"])
def quorum(request: pytest.FixtureRequest, make_quorum: MakeQuorum) -> Iterator[Quorum]:
    """The first voter, and the later ones as observers; all of them run."""
    later = LATER[request.param]
    with make_quorum(request.param, len(later) + 1) as found:
        found.form([FIRST])
        found.start()
        found.settled(found.keys(FIRST), found.keys(*later))
        yield found


def replace_the_voter(quorum: Quorum, tools: ToolRunner) -> None:
    """Have the later controllers take over, by each kind's own command."""
    later = LATER[quorum.members[FIRST].kind]
    first = quorum.members[FIRST]
    where = ("--bootstrap-controller", quorum.addresses)
    if quorum.members[FIRST].kind == "kvorum":
        quorum.wait_for(
            lambda: {*later} <= registered_controllers(first.address), f"{later} are registered"
        )
        wanted = ",".join(map(str, later))
        demand_success(run_ours([*where, "reassign", "--voters", wanted, "--wait"]))
        return
    for newcomer in later:
        file = str(quorum.members[newcomer].properties)
        demand_success(run_real(("--command-config", file, *where, "add-controller"), tools))
    node_id, directory_id = first.key
    which = ("--controller-id", str(node_id), "--controller-directory-id", directory_id)
    demand_success(run_real((*where, "remove-controller", *which), tools))


def demand_success(result: ToolResult) -> None:
    assert result.exit_code == 0, result


def test_every_record_is_read_once_while_the_named_controller_is_replaced(
    quorum: Quorum, kafka_tools: ToolRunner
) -> None:
    later = LATER[quorum.members[FIRST].kind]
    options = {"controllers": quorum.members[FIRST].address}
    stream = stream_over(options)
    with writing(quorum) as writer, ThreadPoolExecutor(1) as pool:
        read_on(stream, writer)
        change = pool.submit(replace_the_voter, quorum, kafka_tools)
        while not change.done():
            stream.advance()
        change.result()
        found = quorum.settled(quorum.keys(*later), quorum.keys(FIRST))
        # There is no listener any more at the one address that the stream was given.
        quorum.members[FIRST].stop()
        read_on(stream, writer)
        left = {*later}
        if len(left) > 2:
            # The next leader is found among the voters that were learnt.
            quorum.kill(found.leader_id)
            left.remove(found.leader_id)
            read_on(stream, writer)
        writer.wait_for_more(1)
        assert stream.plan()
        # Addresses that were learnt in a run are not in the checkpoint.
        options["retryTimeoutMs"] = "1000"
        stream.restart()
        with pytest.raises(QuorumError, match=rf"asked were {options['controllers']}; .*refused"):
            stream.read()
        options["controllers"] = quorum.members[left.pop()].address
        options["retryTimeoutMs"] = "60000"
        stream.restart()
        read_on(stream, writer)
    read_on(stream, writer, more=0)
    stream.stop()
    check(rows_of(stream), quorum, writer, epochs_min=2)
