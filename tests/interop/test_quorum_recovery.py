"""A quorum that lost its majority is recovered, and goes on under ours and under real Kafka."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.interop.controller_quorum import ControllerQuorum
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolRunner
from tests.support.node import Kind
from tests.support.node_process import run_kvorum
from tests.support.waiting import wait_for

from kvorum.wire.messages.describe_quorum import DescribeQuorumResponsePartitionData

pytestmark = pytest.mark.slow
VOTERS = (1, 2, 3)
NEWCOMERS = (4, 5)
TO_DYNAMIC = ("upgrade", "--feature", "kraft.version=1")


@pytest.mark.parametrize("kind", ["kafka", "kvorum"])
@pytest.mark.parametrize("is_static", [False, True], ids=["dynamic", "static"])
def test_one_of_three_goes_on_and_the_quorum_grows_again(
    kind: Kind, java: Java, kafka_tools: ToolRunner, tmp_path: Path, *, is_static: bool
) -> None:
    with lost_quorum(kind, java, kafka_tools, tmp_path, is_static=is_static) as (quorum, end):
        controller = quorum.controllers[1]
        epoch = recover(quorum)
        if is_static:
            voters = {"controller.quorum.voters": f"1@{controller.address}"}
            quorum.write_settings(voters, 1)
        quorum.start(1)
        one = {(1, key) for _, key in [controller.key]}

        def goes_on() -> DescribeQuorumResponsePartitionData | None:
            # No high watermark is known before the leader has committed something in its epoch.
            told = quorum.described()
            return told if told is not None and told.high_watermark >= end else None

        found = wait_for(
            goes_on, "what was committed is committed again", otherwise=quorum.last_words
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
    kind: Kind, java: Java, tools: ToolRunner, folder: Path, *, is_static: bool
) -> Generator[tuple[ControllerQuorum, int]]:
    """Run three voters, and kill all; yield them, and an offset that was committed by then."""
    with ControllerQuorum(kind, folder, count=5, java=java, tools=tools) as quorum:
        quorum.write_dynamic_settings()
        if is_static:
            first = [quorum.controllers[node_id] for node_id in VOTERS]
            voters = ",".join(f"{one.node_id}@{one.address}" for one in first)
            quorum.write_settings({"controller.quorum.voters": voters}, *VOTERS)
            for node_id in VOTERS:
                quorum.format(node_id)
            for node_id in NEWCOMERS:
                quorum.format(node_id, "--no-initial-controllers")
        else:
            quorum.form(VOTERS)
        quorum.start(*VOTERS)
        end = wait_for(
            lambda: committed(quorum),
            "every voter has metadata that is committed",
            otherwise=quorum.last_words,
        )
        for node_id in VOTERS:
            quorum.controllers[node_id].kill()
        yield quorum, end


def committed(quorum: ControllerQuorum) -> int | None:
    """Return the high watermark, once every voter has it and metadata is written."""
    found = quorum.described()
    if found is None or found.high_watermark < 10 or len(found.current_voters) < len(VOTERS):
        return None
    has_all = all(state.log_end_offset >= found.high_watermark for state in found.current_voters)
    return found.high_watermark if has_all else None


def recover(quorum: ControllerQuorum) -> int:
    """Recover from the directory of the first voter; return the epoch of its record."""
    directory = str(quorum.controllers[1].data)
    told = run_kvorum("quorum", "recover", "--directories", directory)
    assert "Dry run: nothing was written." in told
    run_kvorum("quorum", "recover", "--directories", directory, "--execute")
    assert "there is nothing to do" in run_kvorum(
        "quorum", "recover", "--directories", directory, "--execute"
    )
    return 1001


def upgrade(quorum: ControllerQuorum, tools: ToolRunner) -> None:
    address = quorum.controllers[1].address

    def try_it() -> bool:
        asked = ("--bootstrap-controller", address, *TO_DYNAMIC)
        return tools.run("kafka-features", *asked).exit_code == 0

    wait_for(try_it, "kraft.version can be 1")


def add(quorum: ControllerQuorum, node_id: int, tools: ToolRunner) -> None:
    """Add a controller with Kafka's own tool, as soon as it has caught up."""
    properties = str(quorum.controllers[node_id].properties)
    asked = ("--bootstrap-controller", quorum.controllers[1].address)

    def try_it() -> bool:
        words = (*asked, "--command-config", properties, "add-controller")
        return tools.run("kafka-metadata-quorum", *words).exit_code == 0

    wait_for(try_it, f"{node_id} has become a voter", otherwise=quorum.last_words)
