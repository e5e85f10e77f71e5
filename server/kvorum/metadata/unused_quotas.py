"""The end of what is known of clients' use of their quotas (Kafka's ExpireSensorTask)."""

from collections.abc import Callable
from typing import Final, TypeVar

FORGET_AFTER_MS: Final = 3_600_000
"""The time after which a use that did not go on is forgotten, as in Kafka."""
FORGET_INTERVAL_MS: Final = 30_000
"""The time between two looks at all uses, for those to forget, as in Kafka."""
Key = TypeVar("Key")
Use = TypeVar("Use")


class UnusedQuotas:
    """Forgets uses, at most once in an interval, so that a new client costs no look at others."""

    def __init__(self) -> None:
        self._looked_ms = 0.0

    def forget(self, uses: dict[Key, Use], last_ms: Callable[[Use], float], now_ms: float) -> None:
        """Take the old ones out of `uses`; `last_ms` returns when a use went on last."""
        if now_ms - self._looked_ms < FORGET_INTERVAL_MS:
            return
        self._looked_ms = now_ms
        for key, use in list(uses.items()):
            if now_ms - last_ms(use) > FORGET_AFTER_MS:
                del uses[key]
