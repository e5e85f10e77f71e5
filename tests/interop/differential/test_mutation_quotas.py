"""The controller mutation quota of both controllers: what is refused, and how long to wait."""

from pathlib import Path
from typing import Final

import pytest
from tests.interop.differential.comparing import is_object
from tests.interop.differential.harness import Pair, names_of
from tests.interop.differential.script import TIMEOUT_MS, Fields, Step, created, started, topic
from tests.support.kafka.java import Java

from kvorum.wire.json_form import Json

TOLERANCE_MS: Final = 20_000
RATE: Final = 0.001
WINDOWS: Final = {"controller.quota.window.num": "2", "controller.quota.window.size.seconds": "3"}

pytestmark = pytest.mark.timeout(300)


def quota(rate: float | None, **entity: str | None) -> Step:
    """Set the rate of an entity, `user` and `client`; None removes it."""
    types = {"user": "user", "client": "client-id"}
    who = [{"entityType": types[kind], "entityName": name} for kind, name in entity.items()]
    operation = {"key": "controller_mutation_rate", "value": rate or 0.0, "remove": rate is None}
    return Step("AlterClientQuotas", 1, {"entries": [{"entity": who, "ops": [operation]}]})


def more_partitions(count: int, version: int, *names: str) -> Step:
    topics = [{"name": name, "count": count, "assignments": None} for name in names]
    body: Fields = {"topics": topics, "timeoutMs": TIMEOUT_MS}
    return Step("CreatePartitions", version, body, is_placed=True)


def deletion(version: int, *names: str) -> Step:
    topics = [{"name": name} for name in names]
    body: Fields = {"topics": topics, "topicNames": list(names), "timeoutMs": TIMEOUT_MS}
    return Step("DeleteTopics", version, body)


def many(name: str, partitions: int) -> Fields:
    return topic(name, [[1]] * partitions)


STEPS: Final = (
    *started(1),
    created(many("before", 3)),
    quota(RATE, user=None),
    *started(2),
    # All that was saved up goes to the first, and is overdrawn.
    created(many("a", 3), many("b", 1), topic("c", [[9]])),
    created(many("d", 1)),
    created(many("d", 1), validate_only=True),
    more_partitions(5, 3, "before", "nowhere"),
    deletion(6, "before"),
    # Older versions are served all the same, and owe more and more.
    created(many("e", 2), version=5),
    more_partitions(5, 2, "before"),
    deletion(4, "e"),
    created(many("f", 1)),
    # A closer quota has a bucket of its own.
    quota(RATE, user="ANONYMOUS", client="raw"),
    *started(3),
    created(many("g", 2), many("h", 1)),
    quota(None, user="ANONYMOUS", client="raw"),
    quota(None, user=None),
    *started(4),
    created(many("i", 7), many("j", 7)),
)


@pytest.mark.slow
def test_the_same_is_refused_and_the_same_time_to_be_waited(java: Java, tmp_path: Path) -> None:
    waits: list[tuple[int, int]] = []
    with Pair(java, tmp_path, overrides=WINDOWS) as pair:
        for step in STEPS:
            for side in pair.sides:
                side.hang_up()
                side.send(step)
            real, ours = (
                names_of(side, set()).answer(step.api, side.receive(step)) for side in pair.sides
            )
            for side in pair.sides:
                side.take_records()
            waits.append((taken_out(real), taken_out(ours)))
            assert real == ours, step.as_json()
    assert all(abs(real - ours) < TOLERANCE_MS for real, ours in waits), waits
    throttled = [real for real, _ in waits if real]
    assert len(throttled) == 10
    # 2 windows of 3 seconds at 0.001 a second make 0.006 tokens; 3 were taken.
    assert 2_994_000 - TOLERANCE_MS < throttled[0] <= 2_994_000


def taken_out(answer: Json) -> int:
    """Return the time to wait of an answer, and take it out of it."""
    assert is_object(answer)
    wait = answer.pop("throttleTimeMs", 0)
    assert isinstance(wait, int)
    return wait
