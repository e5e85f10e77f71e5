"""A controller and a broker, each in a process of its own, that lose each other."""

from pathlib import Path

import pytest
from tests.process.separate_pair import Pair, make_pair
from tests.support.combined_node import OTHER_CLUSTER_ID
from tests.support.node_process import (
    RUNS,
)
from tests.support.topics import create, wait_for_topics, wait_until_served

from kvorum.wire.error_codes import ErrorCode


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """A formatted controller and a formatted broker, not running."""
    return make_pair(tmp_path)


def test_what_is_asked_of_the_broker_the_controller_does(pair: Pair) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker_address, "one", "two") == [ErrorCode.NONE] * 2
        wait_for_topics(pair.broker_address, "one", "two")
        assert pair.broker.terminate().exit_code == 0
        with pair.broker:
            wait_for_topics(pair.broker_address, "one", "two")
            pair.broker.kill()
        with pair.broker:
            wait_for_topics(pair.broker_address, "one", "two")
            assert create(pair.broker_address, "three") == [ErrorCode.NONE]


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "stopped"])
def test_a_broker_outlives_its_controller(pair: Pair, *, is_killed: bool) -> None:
    with pair.controller, pair.broker:
        assert create(pair.broker_address, "before") == [ErrorCode.NONE]
        if is_killed:
            pair.controller.kill()
        else:
            assert pair.controller.terminate().exit_code == 0
        # What the broker knows it goes on telling.
        wait_until_served(pair.broker_address)
        with pair.controller:
            # Forwarded once the broker has found the controller again.
            assert create(pair.broker_address, "after") == [ErrorCode.NONE]
            wait_for_topics(pair.broker_address, "before", "after")
            assert pair.broker.terminate().exit_code == 0


def test_a_broker_may_start_before_its_controller(pair: Pair) -> None:
    pair.broker.launch()
    try:
        pair.broker.wait_for_line("cannot be reached")
        with pair.controller:
            pair.broker.wait_for_line(RUNS)
            assert create(pair.broker_address, "topic") == [ErrorCode.NONE]
    finally:
        pair.broker.kill()


def test_a_broker_of_another_cluster_is_not_let_in(tmp_path: Path) -> None:
    pair = make_pair(tmp_path, broker_cluster_id=OTHER_CLUSTER_ID)
    properties = tmp_path / "broker.properties"
    text = properties.read_text()
    properties.write_text(text + "initial.broker.registration.timeout.ms=1500\n")
    with pair.controller:
        ended = pair.broker.run_to_end()
        assert ended.exit_code == 1
        assert ended.last_line.startswith("kvorum server: ")
        assert [line for line in ended.lines if "INCONSISTENT_CLUSTER_ID" in line]
        assert pair.controller.terminate().exit_code == 0
