"""Scripts of consumer groups, played to Kafka's shard and ours."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from tests.interop.consumer_group_script import ConsumerGroupScript
from tests.interop.group_coordinator_comparison import Comparison
from tests.interop.line_oracle import Oracle

from kvorum.groups.settings import GroupCoordinatorSettings

STEPS: Final = 250


def play_scripts(
    oracle: Oracle, scripts: Iterable[tuple[GroupCoordinatorSettings, ConsumerGroupScript]]
) -> Counter[str]:
    """Have both take the steps of each script, alike; return how often each kind came about."""
    kinds: Counter[str] = Counter()
    for settings, script in scripts:
        both = Comparison(oracle, settings)
        for _ in range(STEPS):
            line = script.step()
            script.learn(line, both.step(line))
        both.step("unload")
        kinds += both.kinds
    return kinds
