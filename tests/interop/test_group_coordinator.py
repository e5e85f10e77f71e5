"""Classic groups and offsets: Kafka's own GroupCoordinatorShard and ours, step by step."""

from collections import Counter
from random import Random
from typing import Final

import pytest
from tests.interop.group_coordinator_comparison import Comparison, group_coordinator_oracle
from tests.interop.group_coordinator_script import Script, old_record
from tests.support.kafka.java import Java

from kvorum.groups.settings import GroupCoordinatorSettings

SCRIPTS: Final = 60
STEPS: Final = 250
OLD_RECORDS: Final = 40
METADATA_MAX: Final = 10
RETENTION_MINUTES: Final = 2


def _settings(random: Random) -> GroupCoordinatorSettings:
    return GroupCoordinatorSettings(
        group_max_size=random.choice((2, 4, 100)),
        group_initial_rebalance_delay_ms=random.choice((0, 3000, 8000)),
        offset_metadata_max_bytes=METADATA_MAX,
        offsets_retention_ms=RETENTION_MINUTES * 60_000,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_each_step_gives_what_kafka_gives(java: Java, seed: int) -> None:
    random = Random(seed)
    kinds: Counter[str] = Counter()
    with group_coordinator_oracle(java) as oracle:
        for _ in range(SCRIPTS):
            both = Comparison(oracle, _settings(random))
            script = Script(random, both.driver)
            for _ in range(STEPS):
                both.step(script.step())
            both.step("unload")
            kinds += both.kinds
    wanted = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
    assert min(kinds[f"state {one}"] for one in wanted) > SCRIPTS, kinds
    errors = ("error 25", "error 27", "error 22", "error 69")
    assert min(kinds[one] for one in errors) > SCRIPTS // 10, kinds


def test_records_of_every_version_load_as_kafka_loads_them(java: Java) -> None:
    random = Random(5)
    kinds: Counter[str] = Counter()
    with group_coordinator_oracle(java) as oracle:
        for _ in range(SCRIPTS):
            both = Comparison(oracle, _settings(random))
            script = Script(random, both.driver)
            for _ in range(OLD_RECORDS):
                both.step(old_record(random) if random.random() < 0.9 else "marker 7 commit")
            both.step("load")
            for _ in range(OLD_RECORDS):
                both.step(script.step())
            kinds += both.kinds
    assert kinds["state Stable"] > SCRIPTS
