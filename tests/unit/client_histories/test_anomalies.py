"""Every anomaly in a history that is made for it, beside one that is sound but for a detail."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.client_histories.history_lines import Lines, broken_by, names_in, poll, send

from kvorum.client_histories import cycle_anomalies
from kvorum.client_histories.anomalies import Anomaly, Legality, Settings
from kvorum.client_histories.check import Report
from kvorum.client_histories.findings import Facts, Kind
from kvorum.client_histories.graph import Graph

UNCOMMITTED = Settings(is_read_committed=False)
READS = {"concurrent": "G1c", "process": "G1c-process", "realtime": "G1c-realtime"}
WRITES = {"concurrent": "G0", "process": "G0-process", "realtime": "G0-realtime"}


def cases_of(report: Report, anomaly: Anomaly, legality: Legality = Legality.NEVER) -> list[Facts]:
    return report.kept.get(Kind(anomaly, legality), [])


def written(*values: int) -> Lines:
    """Return a history in which process 1 sends values to key 1, from offset 0 on."""
    lines = Lines()
    for offset, value in enumerate(values):
        lines.add(1, send(1, value, offset), function="send")
    return lines


# -- the log -----------------------------------------------------------------------------------


def test_inconsistent_offsets() -> None:
    lines = written(10, 11)
    lines.add(2, poll(k1=[(0, 10), (1, 11)]), function="poll")
    assert names_in(lines.report()) == set()
    lines.add(3, poll(k1=[(0, 10), (1, 12)]), function="poll")
    report = lines.report()
    assert names_in(report) == {"inconsistent-offsets"}
    (case,) = cases_of(report, Anomaly.INCONSISTENT_OFFSETS)
    assert case.problem == "offset 1 has the values 11, 12"
    assert list(case.operations) == [1, 2, 3]


def test_duplicate() -> None:
    lines = written(10, 11)
    lines.add(2, poll(k1=[(0, 10), (1, 11), (4, 10)]), function="poll")
    report = lines.report()
    assert broken_by(report) == names_in(report) == {"duplicate"}
    (case,) = cases_of(report, Anomaly.DUPLICATE)
    assert case.problem == "value 10 is at the offsets 0, 4"
    assert names_in(lines.report(Settings(is_idempotent=False))) == {"duplicate"}
    assert lines.report(Settings(is_idempotent=False)).is_sound


def test_a_lost_write_of_a_committed_value() -> None:
    lines = written(10, 11, 12)
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    lines.add(3, poll(k1=[(2, 12)]), function="poll")
    report = lines.report()
    assert names_in(report) == {"lost-write", "unseen"}
    (case,) = cases_of(report, Anomaly.LOST_WRITE)
    assert "value 11 at offset 1" in case.problem
    assert list(case.operations) == [1, 4]
    assert [place.offset for place in case.strips[0].places] == [0, 1, 2]


@pytest.mark.parametrize("seen", [True, False])
def test_a_transaction_of_unknown_outcome_is_torn_once_a_value_of_it_was_polled(
    seen: bool,
) -> None:
    lines = written(10, 11)
    lines.add(2, send(1, 20, 2), send(2, 21, 0), outcome="info")
    lines.add(3, send(1, 12, 3), send(2, 13, 1), function="send")
    found = [(0, 10), (1, 11), (2, 20), (3, 12)] if seen else [(0, 10), (1, 11), (3, 12)]
    lines.add(4, poll(k1=found, k2=[(1, 13)]), function="poll")
    assert broken_by(lines.report()) == ({"lost-write"} if seen else set())


def test_sends_of_unknown_outcome_outside_of_transactions_prove_nothing_for_each_other() -> None:
    lines = Lines()
    lines.add(2, send(1, 20, 0), send(2, 21, 0), function="send", outcome="info")
    lines.add(3, send(2, 13, 1), function="send")
    lines.add(4, poll(k1=[(0, 20)], k2=[(1, 13)]), function="poll")
    assert names_in(lines.report()) == set()


def test_a_value_that_only_a_failed_operation_polled_is_lost() -> None:
    lines = written(10, 11)
    lines.add(2, poll(k1=[(0, 10), (1, 11)]), outcome="fail")
    lines.add(3, poll(k1=[(1, 11)]), function="poll")
    assert names_in(lines.report()) == {"lost-write", "unseen"}


def test_an_aborted_value_that_only_a_failed_operation_polled_is_not_lost() -> None:
    lines = written(10)
    lines.add(2, send(1, 20, 1), outcome="fail")
    lines.add(3, poll(k1=[(1, 20)]), outcome="fail")
    lines.add(1, send(1, 11, 2), function="send")
    lines.add(4, poll(k1=[(0, 10)]), function="poll")
    lines.add(5, poll(k1=[(2, 11)]), function="poll")
    assert names_in(lines.report()) == set()


def test_unseen() -> None:
    lines = written(10, 11)
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    report = lines.report()
    assert broken_by(report) == names_in(report) == {"unseen"}
    unfinished = lines.report(Settings(is_read_to_the_end=False))
    assert unfinished.is_sound
    assert names_in(unfinished) == {"unseen"}


def test_an_unseen_value_may_be_of_unknown_offset() -> None:
    lines = written(10)
    lines.add(2, send(1, 11), function="send")
    lines.add(3, poll(k1=[(0, 10)]), function="poll")
    (case,) = cases_of(lines.report(), Anomaly.UNSEEN)
    assert case.problem.startswith("value 11, of unknown offset, was acknowledged")


@pytest.mark.parametrize("outcome", ["ok", "info", "fail"])
def test_values_that_are_not_acknowledged_need_not_be_seen(outcome: str) -> None:
    lines = written(10)
    lines.add(2, send(1, 11, 1), outcome=outcome)
    lines.add(3, poll(k1=[(0, 10)]), function="poll")
    assert names_in(lines.report()) == ({"unseen"} if outcome == "ok" else set())


@pytest.mark.parametrize("reader", ["ok", "fail"])
def test_g1a_is_a_poll_of_an_ok_operation(reader: str) -> None:
    lines = Lines()
    lines.add(1, send(1, 10, 0), outcome="fail")
    lines.add(2, poll(k1=[(0, 10)]), outcome=reader)
    assert broken_by(lines.report()) == ({"G1a"} if reader == "ok" else set())
    assert lines.report(UNCOMMITTED).is_sound
    assert names_in(lines.report(UNCOMMITTED)) == names_in(lines.report())


def test_g1a_of_a_send_without_a_transaction_is_never_legal() -> None:
    lines = Lines()
    lines.add(1, send(1, 10), function="send", outcome="fail")
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    assert broken_by(lines.report(UNCOMMITTED)) == {"G1a"}


@pytest.mark.parametrize("outcome", ["ok", "fail", "info"])
def test_precommitted_read(outcome: str) -> None:
    lines = Lines()
    lines.add(1, send(1, 10, 0), poll(k1=[(0, 10)]), outcome=outcome)
    report = lines.report()
    assert broken_by(report) == {"precommitted-read"}
    assert names_in(lines.report(UNCOMMITTED)) == {"precommitted-read"}
    assert lines.report(UNCOMMITTED).is_sound


# -- the order of polls and sends --------------------------------------------------------------


@pytest.mark.parametrize(
    ("offsets", "name"),
    [
        ((0, 1, 4), None),
        ((0, 4), "int-poll-skip"),
        ((0, 1, 0), "int-nonmonotonic-poll"),
        ((0, 1, 1), "int-nonmonotonic-poll"),
    ],
)
@pytest.mark.parametrize("is_split", [True, False])
def test_polls_of_one_operation(offsets: tuple[int, ...], name: str | None, is_split: bool) -> None:
    """Offsets 2 and 3 are markers."""
    lines = Lines()
    values = {0: 10, 1: 11, 4: 12}
    for offset, value in values.items():
        lines.add(1, send(1, value, offset), function="send")
    lines.add(9, poll(k1=list(values.items())), function="poll")
    found = [(offset, values[offset]) for offset in offsets]
    parts = [poll(k1=found[:1]), poll(k1=found[1:])] if is_split else [poll(k1=found)]
    lines.add(2, *parts, function="poll", rebalanced=[2])
    assert names_in(lines.report()) == broken_by(lines.report()) == ({name} if name else set())
    lines.add(3, *parts, function="poll", rebalanced=[1])
    assert lines.report().counts.keys() - {Kind(Anomaly.REALTIME_LAG, Legality.REPORTED)} == {
        kind for kind in lines.report().counts if kind.anomaly.label == name
    }
    assert sum(lines.report().counts.values()) <= 2


def moves(name: str) -> Callable[[Lines], None]:
    """Return what a consumer of key 1 does between two polls."""

    def change(lines: Lines) -> None:
        if name == "crash":
            lines.add(2, function="crash", outcome="info")
        elif name:
            function, outcome, keys = name.split()
            lines.add(2, *map(int, keys.split(",")), function=function, outcome=outcome)

    return change


@pytest.mark.parametrize(
    ("between", "is_found"),
    [
        ("", True),
        ("assign ok 1,2", True),
        ("assign ok 2", False),
        ("assign fail 2", True),
        ("assign info 1", False),
        ("crash", False),
    ],
)
@pytest.mark.parametrize(
    ("second", "name"), [([(2, 12)], "poll-skip"), ([(0, 10), (1, 11)], "nonmonotonic-poll")]
)
def test_polls_of_an_assigned_process(
    between: str, is_found: bool, second: list[tuple[int, int]], name: str
) -> None:
    lines = written(10, 11, 12)
    lines.add(9, poll(k1=[(0, 10), (1, 11), (2, 12)]), function="poll")
    lines.add(2, 1, function="assign")
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    moves(between)(lines)
    # Failed operations do not count: their consumers go back.
    lines.add(2, poll(k1=[(1, 11)]), outcome="fail")
    lines.add(2, poll(k1=second), function="poll")
    assert names_in(lines.report()) == broken_by(lines.report()) == ({name} if is_found else set())


@pytest.mark.parametrize("outcome", ["ok", "fail", "info"])
def test_the_polls_of_a_failed_operation_may_begin_anywhere(outcome: str) -> None:
    lines = written(10, 11, 12)
    lines.add(9, poll(k1=[(0, 10), (1, 11), (2, 12)]), function="poll")
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    lines.add(2, poll(k1=[(2, 12)]), function="poll", outcome=outcome)
    assert names_in(lines.report()) == ({"poll-skip"} if outcome == "ok" else set())


@pytest.mark.parametrize("subscribes_at", [0, 1])
def test_polls_of_a_subscribed_process_may_skip(subscribes_at: int) -> None:
    lines = written(10, 11, 12)
    lines.add(9, poll(k1=[(0, 10), (1, 11), (2, 12)]), function="poll")
    functions = ["subscribe", "subscribe"] if subscribes_at == 0 else ["assign", "subscribe"]
    lines.add(2, 1, function=functions[0])
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    lines.add(2, 1, function=functions[1])
    lines.add(2, poll(k1=[(2, 12)]), function="poll")
    report = lines.report()
    assert report.is_sound
    assert cases_of(report, Anomaly.POLL_SKIP, Legality.SUBSCRIBED)


def test_an_assign_after_a_subscribe_begins_again() -> None:
    lines = written(10, 11, 12)
    lines.add(9, poll(k1=[(0, 10), (1, 11), (2, 12)]), function="poll")
    lines.add(2, 1, function="assign")
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    lines.add(2, 1, function="subscribe")
    lines.add(2, 1, function="assign")
    lines.add(2, poll(k1=[(2, 12)]), function="poll")
    assert names_in(lines.report()) == set()


def test_a_failed_send_has_no_place_in_the_order() -> None:
    lines = Lines()
    lines.add(1, send(1, 10, 1), function="send")
    lines.add(1, send(1, 11), function="send", outcome="fail")
    lines.add(2, poll(k1=[(0, 11), (1, 10)]), function="poll")
    assert names_in(lines.report()) == {"G1a"}


@pytest.mark.parametrize("outcome", ["ok", "info"])
def test_nonmonotonic_send(outcome: str) -> None:
    lines = Lines()
    lines.add(1, send(1, 10, 1), function="send")
    lines.add(1, send(1, 11), function="send", outcome=outcome)
    lines.add(2, poll(k1=[(0, 11), (1, 10)]), function="poll")
    report = lines.report()
    assert broken_by(report) == {"nonmonotonic-send"}
    (case,) = cases_of(report, Anomaly.NONMONOTONIC_SEND)
    assert case.problem == "process 1 came from offset 1 to offset 0, 1 back"


def test_int_nonmonotonic_send() -> None:
    lines = Lines()
    lines.add(1, send(1, 10, 1), send(1, 11, 0))
    lines.add(2, poll(k1=[(0, 11), (1, 10)]), function="poll")
    assert broken_by(lines.report()) == names_in(lines.report()) == {"int-nonmonotonic-send"}


def test_int_send_skip_is_legal() -> None:
    lines = Lines()
    lines.add(3, send(1, 12, 1), function="send")
    lines.add(1, send(1, 10, 0), send(1, 11, 2))
    lines.add(2, poll(k1=[(0, 10), (1, 12), (2, 11)]), function="poll")
    report = lines.report()
    assert report.is_sound
    (case,) = cases_of(report, Anomaly.INT_SEND_SKIP, Legality.NOT_ISOLATED)
    assert case.problem == "process 1 came from offset 0 to offset 2, and left out 1"


# -- circles -----------------------------------------------------------------------------------


def circle_of(first: list[list[Any]], second: list[list[Any]], order: str) -> Lines:
    """Return a history of two transactions: at the same time, or one after the other."""
    lines = Lines()
    if order == "concurrent":
        lines.invoke(1, first)
        lines.invoke(2, second)
        lines.complete(1, first)
        lines.complete(2, second)
    else:
        lines.add(1, *first)
        lines.add(1 if order == "process" else 2, *second)
    return lines


@pytest.mark.parametrize("order", READS)
def test_a_circle_of_reads(order: str) -> None:
    second = [send(2, 20, 0), *([poll(k1=[(0, 10)])] if order == "concurrent" else [])]
    lines = circle_of([send(1, 10, 0), poll(k2=[(0, 20)])], second, order)
    lines.add(3, poll(k1=[(0, 10)], k2=[(0, 20)]), function="poll")
    report = lines.report()
    assert broken_by(report) == names_in(report) == {READS[order]}
    assert lines.report(UNCOMMITTED).is_sound
    assert names_in(lines.report(UNCOMMITTED)) == {READS[order]}


@pytest.mark.parametrize("order", WRITES)
def test_a_circle_of_writes_is_legal(order: str) -> None:
    """The order of a process or of time needs a third transaction, which is under way longer."""
    lines = Lines()
    third = [send(1, 10, 0), send(2, 11, 1)]
    lines.invoke(3, third)
    if order == "concurrent":
        lines.add(1, send(1, 20, 1), send(2, 21, 0))
    else:
        lines.add(1, send(1, 20, 1))
        lines.add(1 if order == "process" else 2, send(2, 21, 0))
    lines.complete(3, third)
    lines.add(4, poll(k1=[(0, 10), (1, 20)], k2=[(0, 21), (1, 11)]), function="poll")
    report = lines.report()
    assert report.is_sound
    assert names_in(report) == {WRITES[order]}
    if order == "concurrent":
        (case,) = cases_of(report, Anomaly.G0, Legality.NOT_ISOLATED)
        assert case.problem == (
            "line 3 sent to key 2 before line 4; line 4 sent to key 1 before line 3"
        )


def test_a_circle_of_reads_and_writes_is_legal() -> None:
    first = [send(1, 10, 1), send(2, 11, 0)]
    second = [send(1, 20, 0), poll(k2=[(0, 11)])]
    lines = circle_of(first, second, "concurrent")
    lines.add(3, poll(k1=[(0, 20), (1, 10)], k2=[(0, 11)]), function="poll")
    report = lines.report()
    assert report.is_sound
    (case,) = cases_of(report, Anomaly.G1C, Legality.NOT_ISOLATED)
    assert case.problem == (
        "line 3 sent value 11 of key 2, polled by line 4; line 4 sent to key 1 before line 3"
    )
    assert [strip.key for strip in case.strips] == ["2", "1"]


def test_the_order_in_time_needs_a_completion() -> None:
    """A transaction of unknown outcome may take effect after one that was invoked later."""
    lines = Lines()
    lines.add(1, send(1, 10, 0), poll(k2=[(0, 20)]), outcome="info")
    lines.add(2, send(2, 20, 0))
    lines.add(3, poll(k1=[(0, 10)], k2=[(0, 20)]), function="poll")
    assert names_in(lines.report()) == set()


def test_the_shortest_circle_is_reported() -> None:
    """Operations 1 to 4 read in a ring, and 1 and 2 from each other."""
    lines = Lines()
    steps = {
        process: [
            send(process, 0, 0),
            poll(**{f"k{process % 4 + 1}": [(0, 0)]}, **({"k1": [(0, 0)]} if process == 2 else {})),
        ]
        for process in range(1, 5)
    }
    for process, found in steps.items():
        lines.invoke(process, found)
    for process, found in steps.items():
        lines.complete(process, found)
    (case,) = cases_of(lines.report(), Anomaly.G1C)
    assert sorted(case.operations) == [0, 1]


def test_a_circle_is_looked_for_through_few_of_the_edges_of_one_operation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Readers of a transaction that is under way write between its two values."""
    ways: list[int] = []
    shortest_way = Graph.way

    def counted(graph: Graph, start: int, *rest: int) -> list[int]:
        ways.append(start)
        return shortest_way(graph, start, *rest)

    monkeypatch.setattr(Graph, "way", counted)
    monkeypatch.setattr(cycle_anomalies, "_ANCHORS_MAX", 3)
    lines = Lines()
    lines.invoke(1, [send(1, 0), send(1, 99)])
    for value in range(1, 20):
        lines.add(1 + value, poll(k1=[(0, 0)]), send(1, value, value))
    lines.complete(1, [send(1, 0, 0), send(1, 99, 99)])
    levels = {Anomaly.G0, Anomaly.G1C}
    assert levels <= {kind.anomaly for kind in lines.report().counts}
    assert len(ways) == 3 * len(levels)


# -- measures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["subscribe", "assign"])
def test_consume_counts(function: str) -> None:
    lines = written(10, 11)
    lines.add(2, 1, function=function)
    lines.add(2, poll(k1=[(0, 10), (1, 11)]))
    lines.add(2, poll(k1=[(0, 10), (1, 11)]))
    counts = lines.report().counts
    expected = 2 if function == "subscribe" else None
    assert counts.get(Kind(Anomaly.CONSUME_COUNTS, Legality.REPORTED)) == expected


def test_realtime_lag() -> None:
    lines = written(10, 11, 12)
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    lines.add(3, poll(k1=[(0, 10), (1, 11)]), function="poll")
    lines.add(4, poll(k1=[(0, 10), (1, 11), (2, 12)]), function="poll")
    for number, line in enumerate(lines.lines):
        line["t"] = number * 1_000_000_000
    # Process 2 began to poll at 6 s, when value 11 had been there since 3 s; 3 at 8 s, 12 at 5 s.
    (case,) = cases_of(lines.report(), Anomaly.REALTIME_LAG, Legality.REPORTED)
    assert list(case.operations) == [3]
    assert "process 2 polled to offset 0 and no further, 3.000 s after" in case.problem


def test_a_value_is_stale_once_any_later_one_is_acknowledged() -> None:
    lines = written(10)
    lines.add(8, send(1, 11, 1), function="send", outcome="info")
    lines.add(1, send(1, 12, 2), function="send")
    lines.add(2, poll(k1=[(0, 10)]), function="poll")
    lines.add(3, poll(k1=[(1, 11), (2, 12)]), function="poll")
    (case,) = cases_of(lines.report(), Anomaly.REALTIME_LAG, Legality.REPORTED)
    assert "process 2 polled to offset 0 and no further, 0.001 s after" in case.problem


def test_all_cases_are_counted_and_some_are_kept() -> None:
    lines = written(*range(20))
    report = lines.report()
    kind = Kind(Anomaly.UNSEEN, Legality.NEVER)
    assert report.counts[kind] == 20
    assert len(report.kept[kind]) == 8
