"""Lines of steps for a shard of the group coordinator, some of whose appends fail."""

from random import Random
from typing import Final

from kvorum.wire.primitives import Message

GROUPS: Final = ("ga", "gb")
INSTANCES: Final = ("i1", "i2", "i3")
APPEND_ERRORS: Final = (3, 19, 7, 6, 56, 10, 18, 4)


class CoordinatorSteps:
    """Writes the steps of one script; in a share of the scripts, a share of the appends fails."""

    def __init__(self, random: Random, *, failing_scripts: float, failing_appends: float) -> None:
        self._random = random
        self._count = 0
        self._failing_share = failing_appends if random.random() < failing_scripts else 0.0

    def _failure(self) -> int:
        fails = self._random.random() < self._failing_share
        return self._random.choice(APPEND_ERRORS) if fails else 0

    def _line(self, name: str, version: int, request: Message) -> str:
        self._count += 1
        return f"{name} {version} {self._count} {self._failure()} {request.encode(version).hex()}"

    def _text(self, name: str, version: int, text: str) -> str:
        return f"{name} {version} 0 {self._failure()} {text.encode().hex()}"
