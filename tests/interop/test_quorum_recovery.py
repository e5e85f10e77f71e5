"""A quorum that lost its majority is recovered, and goes on under ours and under real Kafka."""

from collections.abc import Generator
from contextlib import contextmanager

import pytest
from tests.support.kafka.java import ToolRunner
from tests.support.node import NO_VOTERS, Kind
from tests.support.node_process import run_kvorum
from tests.support.quorum.quorum import Described, MakeQuorum, Quorum
from tests.support.waiting import wait_for

pytestmark = pytest.mark.slow
VOTERS = (1, 2, 3)
NEWCOMERS = (4, 5)
TO_DYNAMIC = ("upgrade", "--feature", "kraft.version=1")
GIVES_UP_SOON = "request.timeout.ms=10000\ndefault.api.timeout.ms=20000\n"
"""The tool waits for a minute by itself, as long as tests wait for the tool."""


@pytest.mark.parametrize("kind", ["kafka", "kvorum"])
@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
def test_one_of_three_goes_on_and_the_quorum_grows_again(
    kind: Kind, make_quorum: MakeQuorum, kafka_tools: ToolRunner, *, is_static: bool
) -> None:
    with lost_quorum(make_quorum, kind, is_static=is_static) as (quorum, end):
        epoch = recover(quorum)
        if is_static:
            quorum.configure(quorum.static_voters(1), 1)
        quorum.start(1)
        one = quorum.keys(1)
        # No high watermark is known before the leader has committed something in its epoch.
        found = quorum.until(
            "what was committed is committed again", lambda found: found.high_watermark >= end
        )
        assert found.leader_id == 1
        assert found.leader_epoch > epoch
        if is_static:
            upgrade(quorum, kafka_tools)
        for newcomer in NEWCOMERS:
            quorum.start(newcomer)
            add(quorum, newcomer, kafka_tools)
        quorum.settled(one | quorum.keys(*NEWCOMERS))


@contextmanager
def lost_quorum(
    make_quorum: MakeQuorum, kind: Kind, *, is_static: bool
) -> Generator[tuple[Quorum, int]]:
    """Run three voters, and kill all; yield them, and an offset that was committed by then."""
    with make_quorum(kind, 5) as quorum:
        if is_static:
            quorum.configure(quorum.static_voters(*VOTERS), *VOTERS)
            for node_id in VOTERS:
                quorum.format(node_id)
            for node_id in NEWCOMERS:
                quorum.format(node_id, *NO_VOTERS)
        else:
            quorum.form(VOTERS)
        quorum.start(*VOTERS)
        found = quorum.until("every voter has metadata that is committed", all_have_metadata)
        quorum.kill(*VOTERS)
        yield quorum, found.high_watermark


def all_have_metadata(found: Described) -> bool:
    ends = [state.log_end_offset for state in found.current_voters]
    return len(ends) == len(VOTERS) and min(ends) >= found.high_watermark >= 10


def recover(quorum: Quorum) -> int:
    """Recover from the directory of the first voter; return the epoch of its record."""
    directory = str(quorum.members[1].data)
    told = run_kvorum("quorum", "recover", "--directories", directory)
    assert "Dry run: nothing was written." in told
    run_kvorum("quorum", "recover", "--directories", directory, "--execute")
    assert "there is nothing to do" in run_kvorum(
        "quorum", "recover", "--directories", directory, "--execute"
    )
    return 1001


def upgrade(quorum: Quorum, tools: ToolRunner) -> None:
    address = quorum.members[1].address

    def try_it() -> bool:
        asked = ("--bootstrap-controller", address, *TO_DYNAMIC)
        return tools.run("kafka-features", *asked).exit_code == 0

    wait_for(try_it, "kraft.version can be 1")


def add(quorum: Quorum, node_id: int, tools: ToolRunner) -> None:
    """Add a controller with Kafka's own tool, as soon as it has caught up."""
    properties = quorum.members[node_id].properties
    config = properties.with_suffix(".tool")
    config.write_text(f"{properties.read_text()}\n{GIVES_UP_SOON}")
    asked = ("--bootstrap-controller", quorum.members[1].address)

    def try_it() -> bool:
        words = (*asked, "--command-config", str(config), "add-controller")
        return tools.run("kafka-metadata-quorum", *words).exit_code == 0

    quorum.wait_for(try_it, f"{node_id} has become a voter")
