"""The anomalies of the order in which each process polled and sent the values of a key."""

from typing import Final, NamedTuple

from kvorum.client_histories.anomalies import Anomaly, Legality
from kvorum.client_histories.findings import Facts, Findings, Strip
from kvorum.client_histories.history import FAIL, OK, TXN, History
from kvorum.client_histories.key_entries import FORGOTTEN, SENT
from kvorum.client_histories.key_log import KeyLog

NO_OPERATION: Final = -1


class _Position(NamedTuple):
    """The latest value of a key that a process polled or sent: its operation and its index."""

    operation: int
    place: int


class _Names(NamedTuple):
    """The anomalies of a step forward that is too long, and of a step back."""

    skip: Anomaly
    nonmonotonic: Anomaly


_INSIDE: Final = _Names(Anomaly.INT_POLL_SKIP, Anomaly.INT_NONMONOTONIC_POLL)
_BETWEEN: Final = _Names(Anomaly.POLL_SKIP, Anomaly.NONMONOTONIC_POLL)


class OrderAnomalies:
    """The search for polls and sends out of order, one key at a time."""

    def __init__(self, history: History, findings: Findings) -> None:
        self._history = history
        self._findings = findings

    def find(self, log: KeyLog) -> None:
        """Add what the order of polls and sends of a key shows to the findings."""
        self._find_in_polls(log)
        self._find_in_sends(log)

    def _find_in_polls(self, log: KeyLog) -> None:
        """Find skips and steps back; the polls of one operation are next to one another."""
        indexes = log.indexes
        rebalanced = log.rebalanced
        done: dict[int, _Position] = {}
        """The last value that each process polled in an operation of the outcome ok."""
        current = NO_OPERATION
        place = 0
        for operation, mark, offset, value in log.entries:
            if mark == SENT:
                continue
            if mark == FORGOTTEN:
                self._end(done, current, place)
                current = NO_OPERATION
                done.pop(value, None)
                continue
            here = indexes[offset]
            if operation != current:
                self._end(done, current, place)
                current = operation
                self._begin(log, done, operation, here)
            elif here != place + 1 and operation not in rebalanced:
                before = _Position(operation, place)
                self._add_poll(log, _INSIDE, Legality.NEVER, before, _Position(operation, here))
            place = here
        self._end(done, current, place)

    def _begin(self, log: KeyLog, done: dict[int, _Position], operation: int, place: int) -> None:
        """Compare the first value that an operation polled with the last one of its process."""
        last = done.get(self._history.processes[operation])
        is_ok = self._history.outcomes[operation] == OK
        if is_ok and last is not None and place != last.place + 1:
            here = _Position(operation, place)
            self._add_poll(log, _BETWEEN, self._legality(last, here), last, here)

    def _end(self, done: dict[int, _Position], operation: int, place: int) -> None:
        """Take in the last value that an operation polled, if its outcome is ok."""
        if operation != NO_OPERATION and self._history.outcomes[operation] == OK:
            done[self._history.processes[operation]] = _Position(operation, place)

    def _legality(self, before: _Position, after: _Position) -> Legality:
        """Return the legality of a step between two polls."""
        subscribed = self._history.subscribed
        is_subscribed = subscribed[before.operation] or subscribed[after.operation]
        return Legality.SUBSCRIBED if is_subscribed else Legality.NEVER

    def _add_poll(
        self, log: KeyLog, names: _Names, legality: Legality, before: _Position, after: _Position
    ) -> None:
        anomaly = names.skip if after.place > before.place else names.nonmonotonic
        self._add(log, anomaly, legality, before, after)

    def _find_in_sends(self, log: KeyLog) -> None:
        history = self._history
        latest: dict[int, _Position] = {}
        for operation, mark, offset, value in log.entries:
            if mark != SENT or history.outcomes[operation] == FAIL:
                continue
            index = log.index_of_send(offset, value)
            if index is None:
                continue
            process = history.processes[operation]
            here = _Position(operation, index)
            before = latest.get(process)
            if before is not None:
                self._check_sends(log, before, here)
            latest[process] = here

    def _check_sends(self, log: KeyLog, before: _Position, after: _Position) -> None:
        """Find an anomaly in two sends of a process that follow one another."""
        is_inside = before.operation == after.operation
        if after.place <= before.place:
            names = (Anomaly.NONMONOTONIC_SEND, Anomaly.INT_NONMONOTONIC_SEND)
            self._add(log, names[is_inside], Legality.NEVER, before, after)
        elif (
            is_inside
            and after.place > before.place + 1
            and self._history.kinds[after.operation] == TXN
        ):
            self._add(log, Anomaly.INT_SEND_SKIP, Legality.NOT_ISOLATED, before, after)

    def _add(
        self,
        log: KeyLog,
        anomaly: Anomaly,
        legality: Legality,
        before: _Position,
        after: _Position,
    ) -> None:
        def facts() -> Facts:
            offsets = (log.offsets[before.place], log.offsets[after.place])
            process = self._history.processes[after.operation]
            return Facts(
                f"process {process} came from offset {offsets[0]} to offset {offsets[1]}, "
                f"{_distance(after.place - before.place)}",
                tuple(dict.fromkeys((before.operation, after.operation))),
                (Strip(log.name, log.strip(*offsets), offsets),),
            )

        self._findings.add(anomaly, legality, facts)


def _distance(steps: int) -> str:
    """Return in words how far it is from one value to another; 1 is to the next one."""
    if steps > 1:
        return f"and left out {steps - 1}"
    return f"{-steps} back" if steps else "where it was before"
