"""A controller and a broker, each in a process of its own, that lose each other."""

from pathlib import Path

import pytest
from tests.support.node import OTHER_CLUSTER_ID, QUICK, Pair, make_pair
from tests.support.node_process import RUNS
from tests.support.topics import create, wait_for_topics, wait_until_served

from kvorum.wire.error_codes import ErrorCode


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return make_pair(tmp_path, QUICK)


def test_what_is_asked_of_the_broker_the_controller_does(pair: Pair) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker.address, "one", "two") == [ErrorCode.NONE] * 2
        wait_for_topics(pair.broker.address, "one", "two")
        pair.broker.stop()
        with pair.broker:
            wait_for_topics(pair.broker.address, "one", "two")
            pair.broker.kill()
        with pair.broker:
            wait_for_topics(pair.broker.address, "one", "two")
            assert create(pair.broker.address, "three") == [ErrorCode.NONE]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_a_broker_outlives_its_controller(pair: Pair, *, is_killed: bool) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker.address, "before") == [ErrorCode.NONE]
        if is_killed:
            pair.controller.kill()
        else:
            pair.controller.stop()
        # The broker goes on answering from what it knows.
        wait_until_served(pair.broker.address)
        with pair.controller:
            # Forwarded once the broker has found the controller again.
            assert create(pair.broker.address, "after") == [ErrorCode.NONE]
            wait_for_topics(pair.broker.address, "before", "after")
            pair.broker.stop()


def test_a_broker_may_start_before_its_controller(pair: Pair) -> None:
    pair.broker.launch()
    try:
        pair.broker.process.wait_for_line("cannot be reached")
        with pair.controller:
            pair.broker.process.wait_for_line(RUNS)
            assert create(pair.broker.address, "topic") == [ErrorCode.NONE]
    finally:
        pair.broker.kill()


def test_a_broker_of_another_cluster_is_not_let_in(tmp_path: Path) -> None:
    settings = {"initial.broker.registration.timeout.ms": "1500"}
    pair = make_pair(tmp_path, settings, broker_cluster_id=OTHER_CLUSTER_ID)
    with pair.controller:
        ended = pair.broker.process.run_to_end()
        assert ended.exit_code == 1
        assert ended.last_line.startswith("kvorum server: ")
        assert [line for line in ended.lines if "INCONSISTENT_CLUSTER_ID" in line]
        pair.controller.stop()
