"""``kvorum storage format``, killed anywhere: run again, it ends what it began."""

import random
import subprocess
import time
from pathlib import Path

import pytest
from tests.support.node import CLUSTER_ID, STANDALONE, Node
from tests.support.node_process import KVORUM
from tests.support.topics import create
from tests.support.waiting import PATIENCE_S

from kvorum.wire.error_codes import ErrorCode

ROUNDS = 10
WRITING_TAKES_S = 0.006


def _kill_while_it_writes(command: list[str], data: Path, *, delay_s: float) -> None:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + PATIENCE_S
    # Writing takes milliseconds: a test that sleeps here comes too late.
    while not data.exists() and process.poll() is None:
        assert time.monotonic() < deadline, "it never begins to write"
    moment = time.perf_counter() + delay_s
    while time.perf_counter() < moment:
        pass
    process.kill()
    process.wait()


@pytest.mark.slow
def test_a_format_that_was_killed_is_run_again(tmp_path: Path) -> None:
    dice = random.Random(5)
    for number in range(ROUNDS):
        node = Node(tmp_path / str(number))
        command = [*KVORUM, "storage", "format", "--config", str(node.properties)]
        command += ["--cluster-id", CLUSTER_ID, *STANDALONE]
        _kill_while_it_writes(command, node.data, delay_s=dice.random() * WRITING_TAKES_S)
        was_done = (node.data / "meta.properties").exists()
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        if was_done:
            assert "is already formatted" in again.stderr
        else:
            assert again.returncode == 0, again.stderr
        with node.process:
            assert create(node.broker, "topic") == [ErrorCode.NONE]
