"""Share sessions: those of Kafka's own SharePartitionManager and ours, step by step."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.interop.line_oracle import line_oracle
from tests.interop.share_session_driver import Driver
from tests.interop.share_session_script import Script
from tests.support.kafka.java import Java

SCRIPTS: Final = 40
STEPS: Final = 250
STEPS_SHOWN: Final = 12
KINDS: Final = ("fetch", "respond", "throttle", "acknowledge", "remove", "disconnect", "epoch")
ERRORS: Final = (-1, 42, 122, 123, 133)


@pytest.mark.slow
def test_each_step_gives_what_kafka_gives(java: Java) -> None:
    random = Random(1)
    kinds: Counter[str] = Counter()
    with line_oracle(java, "ShareSessionOracle") as oracle:
        for _ in range(SCRIPTS):
            sessions_max = random.choice((2, 4, 100))
            oracle.answer(f"new {sessions_max}")
            driver = Driver(sessions_max)
            script = Script(random, driver)
            steps: list[str] = []
            for _ in range(STEPS):
                line = script.step()
                steps.append(line)
                ours = driver.answer(line)
                assert ours == oracle.answer(line), "\n".join(steps[-STEPS_SHOWN:])
                kinds[line.partition(" ")[0]] += 1
                kinds[ours.partition(" | ")[0]] += 1
    assert min(kinds[one] for one in KINDS) > SCRIPTS // 4, kinds
    assert min(kinds[f"error {one}"] for one in ERRORS) > 2, kinds
