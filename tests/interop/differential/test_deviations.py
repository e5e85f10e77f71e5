"""The listed deviations are still there, each at the step that shows it."""

from collections.abc import Iterator

import pytest
from tests.interop.differential import comparing
from tests.interop.differential.bodies import TIMEOUT_MS, Fields, created, started, topic
from tests.interop.differential.deviations import DEVIATIONS, Deviation
from tests.interop.differential.harness import Pair
from tests.interop.differential.script import Script, Step
from tests.support.kafka.java import Java
from tests.support.waiting import wait_for


@pytest.fixture(scope="module")
def pair(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both controllers; the last deviation ends the real one."""
    with Pair(java, tmp_path_factory.mktemp("deviations")) as pair:
        yield pair


def test_the_order_that_is_not_compared_differs(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {"retention.ms": "1", "segment.ms": "1"}
    values |= {"cleanup.policy": "compact", "compression.type": "gzip"}
    configs = [{"name": name, "value": value} for name, value in values.items()]
    names = [f"t{number}" for number in range(9, 13)]
    rows: list[Fields] = [{"name": name, "count": 2, "assignments": None} for name in names]
    steps = (
        *started(1),
        created(topic("t", [[1]], configs=configs)),
        created(*(topic(name, [[1]]) for name in names)),
        Step("CreatePartitions", 3, {"topics": rows, "timeoutMs": TIMEOUT_MS}),
    )
    script = Script("order", 0, steps)
    assert pair.run(script).findings == ()
    nothing: dict[tuple[str, str], str] = {}
    monkeypatch.setattr(comparing, "UNORDERED_RECORDS", nothing)
    monkeypatch.setattr(comparing, "UNORDERED_ANSWERS", nothing)
    findings = pair.run(script, is_stopped_by_findings=False).findings
    assert [finding.step_index for finding in findings] == [2, 4]


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_a_deviation_is_still_there(pair: Pair, deviation: Deviation) -> None:
    if deviation.is_fatal:
        with pytest.raises((OSError, AssertionError)):
            pair.run(deviation.script)
        wait_for(lambda: not pair.real.node.process.is_running, "the real controller has ended")
        assert pair.ours.node.process.is_running
        return
    outcome = pair.run(deviation.script)
    assert [finding.step_index for finding in outcome.findings] == [len(deviation.steps) - 1]
