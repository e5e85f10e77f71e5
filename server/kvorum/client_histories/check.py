"""The check of a history: every anomaly that is in it, and whether it is sound."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from kvorum.client_histories.anomalies import Legality, Settings
from kvorum.client_histories.consumption import Consumption
from kvorum.client_histories.cycle_anomalies import CycleAnomalies
from kvorum.client_histories.dependencies import Dependencies
from kvorum.client_histories.findings import Facts, Findings, Kind
from kvorum.client_histories.history import OK, OUTCOME_NAMES, History
from kvorum.client_histories.key_entries import POLLED
from kvorum.client_histories.key_log import KeyLog
from kvorum.client_histories.log_anomalies import LogAnomalies
from kvorum.client_histories.order_anomalies import OrderAnomalies

CASES_KEPT: Final = 8
"""The number of cases of each kind whose facts are kept, unless another one is asked for."""


@dataclass(frozen=True, slots=True)
class Report:
    """The cases that a history has, by kind, and the facts of some of them."""

    history: History
    counts: dict[Kind, int]
    kept: dict[Kind, list[Facts]]

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found that is never legal."""
        return all(kind.legality is not Legality.NEVER for kind in self.counts)

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of operations of each outcome, by its name."""
        counts = Counter(self.history.outcomes)
        return {name: counts[outcome] for outcome, name in OUTCOME_NAMES.items()}


class InterruptedCheckError(KeyboardInterrupt):
    """A check was interrupted; `report` is what it had found in the logs of `key_count` keys."""

    def __init__(self, report: Report, key_count: int) -> None:
        super().__init__()
        self.report = report
        self.key_count = key_count


def check_history(history: History, settings: Settings, kept_max: int = CASES_KEPT) -> Report:
    """Look for all anomalies.

    Raises HistoryError where a value was sent twice, and `InterruptedCheckError` after Ctrl-C.
    """
    findings = Findings(kept_max, settings.excluded)
    key_count = 0
    try:
        committed = _committed_operations(history)
        dependencies = Dependencies(history, committed)
        in_logs = LogAnomalies(history, committed, settings, findings)
        in_orders = OrderAnomalies(history, findings)
        consumption = Consumption(history, findings)
        for entries in history.keys:
            log = KeyLog(history, entries, committed)
            in_logs.find(log)
            in_orders.find(log)
            consumption.find(log)
            dependencies.add(log)
            key_count += 1
        consumption.end()
        CycleAnomalies(history, committed, dependencies, settings, findings).find()
    except KeyboardInterrupt as error:
        raise InterruptedCheckError(_report(history, findings), key_count) from error
    return _report(history, findings)


def _report(history: History, findings: Findings) -> Report:
    return Report(history, dict(findings.counts), findings.kept)


def _committed_operations(history: History) -> bytearray:
    """Return 1 for each operation that is known to be done.

    One of unknown outcome is, if it is a transaction and one of its values was polled by an
    operation of the outcome ok: then all of them are there.
    """
    committed = bytearray(outcome == OK for outcome in history.outcomes)
    for entries in history.keys:
        unknown = entries.unknown_sends
        if not unknown:
            continue
        for operation, mark, _, value in entries.all():
            if mark == POLLED and value in unknown and history.outcomes[operation] == OK:
                committed[unknown[value]] = 1
    return committed
