"""The listed deviations are still there, each at the step that shows it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from tests.interop.differential import comparing
from tests.interop.differential.harness import Pair
from tests.interop.differential.script import (
    TIMEOUT_MS,
    Fields,
    Script,
    Step,
    created,
    directory,
    feature_level,
    heartbeat,
    registration,
    started,
    topic,
)
from tests.support.kafka.java import Java
from tests.support.waiting import wait_for


@dataclass(frozen=True, slots=True)
class Deviation:
    """One deviation: its reason, and steps of which the last shows it.

    `is_fatal` tells that the process of the real controller ends over it.

    When it does not differ any more, `test_deviations` says so. The order of lists and records that
    is not compared at all stands, with its reasons, in `comparing`.
    """

    name: str
    reason: str
    steps: Sequence[Step]
    is_fatal: bool = False

    @property
    def script(self) -> Script:
        return Script(self.name, 0, tuple(self.steps))


def _isr_of_recovery_state(state: int) -> Step:
    change = {
        "partitionIndex": 0,
        "newIsr": [1],
        "newIsrWithEpochs": [{"brokerId": 1, "brokerEpoch": "$epoch:1"}],
        "leaderRecoveryState": state,
    }
    topics = [{"topicId": "$topic:t", "partitions": [change]}]
    return Step("AlterPartition", 3, {"brokerId": 1, "brokerEpoch": "$epoch:1", "topics": topics})


def _registered_with(**listener: object) -> Step:
    body = registration(1)
    body["listeners"] = [{"name": "A", "host": "h", "port": 1, "securityProtocol": 0, **listener}]
    return Step("BrokerRegistration", 4, body)


def _reassigned_to(*targets: list[int]) -> Step:
    topics = [
        {"name": "t", "partitions": [{"partitionIndex": 0, "replicas": replicas}]}
        for replicas in targets
    ]
    return Step("AlterPartitionReassignments", 1, {"timeoutMs": TIMEOUT_MS, "topics": topics})


DEVIATIONS: Final[Sequence[Deviation]] = (
    Deviation(
        "a-directory-that-held-a-deleted-topic-fails",
        "Real Kafka keeps a partition that had no ISR when it was deleted in its index of "
        "directories, fails over the missing topic with UNKNOWN_SERVER_ERROR and gives up its "
        "leadership; ours takes the directory offline.",
        (
            *started(1),
            created(topic("t", [[1]])),
            Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
            Step("DeleteTopics", 6, {"topics": [{"name": "t"}], "timeoutMs": TIMEOUT_MS}),
            Step("BrokerHeartbeat", 2, heartbeat(1, offlineLogDirs=[directory(1)])),
        ),
    ),
    Deviation(
        "a-leader-recovery-state-that-does-not-exist",
        "Real Kafka fails over it with UNKNOWN_SERVER_ERROR and gives up its leadership; ours "
        "refuses the partition with INVALID_REQUEST.",
        (*started(1), created(topic("t", [[1]])), _isr_of_recovery_state(2)),
    ),
    Deviation(
        "a-security-protocol-that-does-not-exist",
        "Real Kafka fails over it with UNKNOWN_SERVER_ERROR and gives up its leadership; ours "
        "refuses the registration.",
        (_registered_with(securityProtocol=9),),
    ),
    Deviation(
        "a-broker-with-the-id-minus-one",
        "Real Kafka takes it for the leader of partitions that nobody leads, and decides about "
        "them anew; ours only registers it. No broker has a negative id.",
        (
            *started(1),
            created(topic("t", [[1]])),
            Step("BrokerHeartbeat", 2, heartbeat(1, wantFence=True)),
            feature_level("eligible.leader.replicas.version", 0, upgrade_type=2),
            Step("BrokerRegistration", 4, {**registration(2), "brokerId": -1}),
        ),
    ),
    Deviation(
        "one-partition-reassigned-twice-in-a-request",
        "Real Kafka decides both from the state before and writes both; where they do not fit "
        "together its process ends while it replays them. Ours refuses the second.",
        (
            *(step for broker in (1, 2, 3, 4) for step in started(broker, directories=2)),
            created(topic("t", [[1, 2]])),
            _reassigned_to([3, 4], [2, 1]),
        ),
        is_fatal=True,
    ),
)


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
