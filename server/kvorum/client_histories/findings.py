"""The cases that a check has found: all are counted, and the facts of some are kept."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.client_histories.anomalies import Anomaly, Legality
from kvorum.client_histories.key_log import Place


class Kind(NamedTuple):
    """The anomaly that a case is of, and its legality."""

    anomaly: Anomaly
    legality: Legality


@dataclass(frozen=True, slots=True)
class Strip:
    """The log of a key around the offsets that a case is about."""

    key: str
    places: tuple[Place, ...]
    centers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """The problem of a case in words, the ids of its operations, and the logs of its keys."""

    problem: str
    operations: Sequence[int]
    strips: tuple[Strip, ...] = ()


class Findings:
    """The counts of cases, and the facts of the first `kept_max` of each kind."""

    def __init__(self, kept_max: int, excluded: Collection[Anomaly] = ()) -> None:
        """Cases of `excluded` anomalies that are never legal otherwise break no history."""
        self._kept_max = kept_max
        self._excluded = excluded
        self.counts: Final[Counter[Kind]] = Counter()
        self.kept: Final[dict[Kind, list[Facts]]] = {}

    def add(self, anomaly: Anomaly, legality: Legality, facts: Callable[[], Facts]) -> None:
        """Count a case, and ask for its facts if they are to be kept."""
        if anomaly in self._excluded and legality is Legality.NEVER:
            legality = Legality.EXCLUDED
        kind = Kind(anomaly, legality)
        self.counts[kind] += 1
        if self.counts[kind] <= self._kept_max:
            self.kept.setdefault(kind, []).append(facts())
