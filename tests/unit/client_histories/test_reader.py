"""The reader of histories: what it takes, and the line and problem of what it does not take."""

import json
import sys
from typing import Any

import pytest
from tests.unit.client_histories.history_lines import Lines, poll, send, texts_of

from kvorum.client_histories.history import Operation, Record
from kvorum.client_histories.history_error import HistoryError
from kvorum.client_histories.reader import read_history

INVOKED = {"t": 0, "p": 1, "type": "invoke", "f": "txn", "v": [["send", 1, 7], ["poll"]]}
DONE = {"t": 5, "p": 1, "type": "ok", "f": "txn"}

SEND_FORM = 'and a send is ["send", key, value], or ["send", key, [offset or null, value]]'
POLL_FORM = 'and a poll is ["poll"], or ["poll", {"key": [[offset, value], …], …}]'

MISFITS: list[tuple[list[Any], int, str]] = [
    ([[]], 1, "it is [], and not an object"),
    ([INVOKED | {"f": "read"}, DONE | {"f": "read", "v": []}], 2, "f is 'read', and not one "),
    ([DONE | {"v": []}], 1, "process 1 completes what it has not invoked"),
    ([INVOKED, DONE | {"f": "poll", "v": []}], 2, "process 1 completes 'poll', and invoked "),
    ([INVOKED, INVOKED], 2, "process 1 invokes an operation, and its last one, of line 1, "),
    ([INVOKED | {"i": 4}, DONE | {"i": 4, "v": []}], 2, "i is 4, after 4: it has to grow"),
    ([INVOKED | {"v": [["send"]]}, DONE | {"type": "fail"}], 1, "v has ['send'], and a send "),
    ([INVOKED | {"v": [["send"]]}], 1, "v has ['send'], and a send is "),
    ([INVOKED | {"f": []}], 1, "f is [], and not one of send, poll, "),
    ([INVOKED | {"t": 1 << 63}, DONE | {"v": []}], 1, "t, the time, is 9223372036854775808, "),
    ([INVOKED | {"p": 1 << 63}], 1, "p, the process, is 9223372036854775808, and not an "),
    ([INVOKED | {"f": "assign", "v": [1]}], 1, "the history has no operation of sends or "),
]
"""Lines that do not fit together, the number of the one that is named, and its problem."""


def operation_of(*lines: dict[str, Any]) -> Operation:
    return read_history(texts_of(lines)).operation(0)


def problem_with(*lines: Any) -> tuple[int, str]:
    texts = [json.dumps(line).encode() + b"\n" for line in lines]
    with pytest.raises(HistoryError) as error:
        read_history(texts)
    return error.value.line, error.value.problem


def test_an_operation_has_what_its_completion_says() -> None:
    value = [["send", 1, [3, 7]], ["poll", {"2": [[0, 4], [2, 5]], "x": []}]]
    assert operation_of(INVOKED, DONE | {"v": value}) == Operation(
        invoked_line=1,
        completed_line=2,
        process=1,
        outcome="ok",
        kind="txn",
        sent=(Record("1", 3, 7),),
        polled=(Record("2", 0, 4), Record("2", 2, 5)),
    )


@pytest.mark.parametrize("outcome", ["fail", "info"])
def test_a_completion_without_a_value_has_that_of_the_invocation(outcome: str) -> None:
    found = operation_of(INVOKED, DONE | {"type": outcome})
    assert (found.outcome, found.sent) == (outcome, (Record("1", None, 7),))


def test_an_operation_that_never_completes_is_of_unknown_outcome() -> None:
    found = operation_of(INVOKED)
    assert (found.outcome, found.completed_line) == ("info", None)
    assert found.sent == (Record("1", None, 7),)


def test_a_number_and_its_text_are_one_key() -> None:
    value = [["send", 1, [0, 7]], ["send", "1", [1, 8]], ["poll", {"1": [[0, 7]]}]]
    history = read_history(texts_of([INVOKED, DONE | {"v": value}]))
    assert [key.name for key in history.keys] == ["1"]


def test_offsets_and_values_may_have_64_bits() -> None:
    large = (1 << 63) - 1
    lines = Lines()
    lines.add(1, send(1, 7, 0), send(1, -large, large - 1))
    lines.add(2, poll(k1=[(0, 7), (large - 1, -large), (large, large)]))
    history = read_history(lines.texts())
    assert history.operation(0).sent == (Record("1", 0, 7), Record("1", large - 1, -large))
    assert history.operation(1).polled[1:] == (
        Record("1", large - 1, -large),
        Record("1", large, large),
    )


def test_operations_come_in_the_order_of_their_completions() -> None:
    lines = Lines()
    lines.invoke(1, [send(1, 7)])
    lines.add(2, send(1, 8, 0))
    lines.complete(1, [send(1, 7, 1)])
    history = read_history(lines.texts())
    assert list(history.processes) == [2, 1]
    assert list(history.invoked_lines) == [2, 1]


def test_a_torn_last_line_is_left_out_and_remembered() -> None:
    texts = texts_of([INVOKED, DONE | {"v": []}, INVOKED])
    history = read_history([*texts[:2], texts[2][:-9]])
    assert (history.torn_line, len(history)) == (3, 1)


def test_a_last_line_that_only_lacks_its_end_is_read() -> None:
    texts = texts_of([INVOKED, DONE | {"v": []}])
    history = read_history([texts[0], texts[1].rstrip()])
    assert history.torn_line is None
    assert history.operation(0).outcome == "ok"


def test_a_torn_line_in_the_middle_is_refused() -> None:
    texts = texts_of([INVOKED, DONE | {"v": []}])
    with pytest.raises(HistoryError, match="line 1: it is not JSON: "):
        read_history([texts[0][:-9] + b"\n", texts[1]])


def test_a_torn_line_alone_is_not_a_history() -> None:
    with pytest.raises(HistoryError, match="line 1: the history has no operation"):
        read_history([b"\x1f\x8b\x08"])


def test_empty_lines_do_not_count() -> None:
    texts = texts_of([INVOKED, DONE | {"v": []}])
    assert len(read_history([texts[0], b"\n", texts[1]])) == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"p": None}, "p, the process, is None, and not an integer of 64 bits"),
        ({"t": 1.5}, "t, the time, is 1.5, and not an integer of 64 bits"),
        ({"v": [["send", 1, 1 << 63]]}, f"v has ['send', 1, {1 << 63}], {SEND_FORM}"),
        ({"t": 1 << 63}, f"t, the time, is {1 << 63}, and not an integer of 64 bits"),
        ({"i": "a"}, "i, the place of the line, is 'a', and not an integer of 64 bits"),
        ({"type": "done"}, "type is 'done', and not one of invoke, ok, fail, info"),
        ({"v": 5}, "v is 5, and not a list"),
        ({"v": [["read", 1]]}, "v has ['read', 1], and not only steps of send and poll"),
        (
            {"v": [["send", 1]]},
            f"v has ['send', 1], {SEND_FORM}",
        ),
        (
            {"v": [["send", 1, [-1, 7]]]},
            f"v has ['send', 1, [-1, 7]], {SEND_FORM}",
        ),
        (
            {"v": [["poll", [1]]]},
            f"v has ['poll', [1]], {POLL_FORM}",
        ),
        (
            {"v": [["poll", {"1": [[None, 7]]}]]},
            "a poll has [[None, 7]] for key 1, and not pairs of offset and value",
        ),
        (
            {"v": [], "rebalanced": [None]},
            "rebalanced has the key None, and a key is an integer or a text",
        ),
        ({"v": [], "rebalanced": 5}, "rebalanced is 5, and not a list of keys"),
        ({}, "v is missing, which a completion of type ok must have"),
    ],
)
def test_a_completion_that_is_malformed_is_refused(change: dict[str, Any], problem: str) -> None:
    assert problem_with(INVOKED, DONE | change) == (2, problem)


def test_a_line_that_is_nested_too_deeply_is_refused_with_its_number() -> None:
    """The depths are those at which JSON cannot be read any more, or be read and not be shown."""
    problem = ""
    for depth in range(sys.getrecursionlimit() * 9 // 10, sys.getrecursionlimit() + 1):
        nested = b"[" * depth + b"]" * depth
        invoked = b'{"t": 0, "p": 1, "type": "invoke", "f": "send", "v": %b}\n' % nested
        with pytest.raises(HistoryError) as error:
            read_history([b"\n", invoked])
        assert error.value.line == 2
        problem = error.value.problem
    assert problem.startswith("it is not JSON: ")


@pytest.mark.parametrize("f", ["send", "poll"])
def test_a_send_does_not_poll_nor_the_other_way_round(f: str) -> None:
    other = {"send": ["poll"], "poll": ["send", 1, [0, 7]]}[f]
    line, problem = problem_with(INVOKED | {"f": f, "v": []}, DONE | {"f": f, "v": [other]})
    assert (line, problem) == (2, f"v has {other}, and not only steps of {f}")


@pytest.mark.parametrize(
    ("lines", "line", "problem"),
    MISFITS,
)
def test_lines_that_do_not_fit_together_are_refused(
    lines: list[Any], line: int, problem: str
) -> None:
    found = problem_with(*lines)
    assert found[0] == line
    assert found[1].startswith(problem)


def test_a_value_that_is_sent_twice_is_refused() -> None:
    lines = Lines()
    lines.add(1, send(5, 7, 0))
    lines.add(2, send(5, 7, 1), poll(k5=[(0, 7)]))
    with pytest.raises(HistoryError, match="line 4: value 7 of key 5 was sent before, in line 2"):
        lines.report()
