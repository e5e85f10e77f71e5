"""Scripts of consumer groups or share groups, played to Kafka's shard and ours."""

from collections import Counter
from collections.abc import Iterable
from typing import Final, Protocol

from tests.interop.group_coordinator_comparison import Comparison
from tests.interop.line_oracle import Oracle

from kvorum.groups.settings import GroupCoordinatorSettings

STEPS: Final = 250


class PlayedScript(Protocol):
    """A script that makes steps from what the last answer showed."""

    def step(self) -> str:
        """Return the next step, which has to be followed by `learn`."""
        ...

    def learn(self, line: str, answer: str) -> None:
        """Take the answer to the last step."""
        ...


def play_scripts(
    oracle: Oracle, scripts: Iterable[tuple[GroupCoordinatorSettings, PlayedScript]]
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
