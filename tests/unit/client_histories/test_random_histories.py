"""Histories of a cluster that is played: they are sound, and an anomaly put into one is found."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Any

import pytest
from tests.unit.client_histories.history_lines import Line, Lines, broken_by, names_in, poll, send
from tests.unit.client_histories.played_kafka import sound_lines

SEEDS = range(15)
OPERATIONS = 60
PROCESS = 1_000_000
"""Processes of planted operations have numbers from here on."""
VALUE = 1_000_000
Plant = Callable[[Lines, int], None]


@cache
def history_of(seed: int) -> tuple[Line, ...]:
    return tuple(sound_lines(seed, operations=OPERATIONS))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_cluster_that_keeps_its_promises_shows_is_sound(seed: int) -> None:
    report = Lines(history_of(seed)).report()
    assert broken_by(report) == set()


def test_the_played_cluster_has_everything_that_may_confuse_a_check() -> None:
    histories = [history_of(seed) for seed in SEEDS]
    lines = [line for history in histories for line in history]
    kinds = {(line["type"], line["f"]) for line in lines}
    functions = {"send", "poll", "txn"}
    assert {(outcome, one) for outcome in ("ok", "fail", "info") for one in functions} <= kinds
    assert {("ok", "assign"), ("info", "assign"), ("ok", "subscribe"), ("info", "crash")} <= kinds
    assert any(line.get("rebalanced") for line in lines)
    names = {name for one in histories for name in names_in(Lines(one).report())}
    assert {"G0", "G1c", "int-send-skip", "poll-skip", "nonmonotonic-poll"} <= names


def test_a_larger_history_of_many_clients_is_sound() -> None:
    report = Lines(sound_lines(1, operations=2000, keys=8, clients=12)).report()
    assert broken_by(report) == set()


# -- planted anomalies -------------------------------------------------------------------------


def add_tail(lines: Lines, end: int, *values: int) -> None:
    """Add a poll of values after the end of key 1, so that they are seen."""
    records = [(end + place, value) for place, value in enumerate(values)]
    lines.add(PROCESS + 99, poll(k1=records), function="poll")


def inconsistent_offsets(lines: Lines, end: int) -> None:
    add_tail(lines, end, VALUE, VALUE + 1)
    lines.add(PROCESS, poll(k1=[(end, VALUE + 2), (end + 1, VALUE + 1)]), function="poll")


def duplicate(lines: Lines, end: int) -> None:
    add_tail(lines, end, VALUE, VALUE + 1, VALUE)


def lost_write(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE, end), function="send", outcome="ok")
    lines.add(PROCESS + 1, send(1, VALUE + 1, end + 1), function="send")
    lines.add(PROCESS + 2, poll(k1=[(end + 1, VALUE + 1)]), function="poll")


def unseen(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE, end))


def g1a(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE), outcome="fail")
    add_tail(lines, end, VALUE)


def precommitted_read(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE, end), poll(k1=[(end, VALUE)]))


def g1c(lines: Lines, end: int) -> None:
    first = [send(1, VALUE, end), poll(k2=[(end, VALUE)])]
    second = [send(2, VALUE, end), poll(k1=[(end, VALUE)])]
    lines.invoke(PROCESS, first)
    lines.invoke(PROCESS + 1, second)
    lines.complete(PROCESS, first)
    lines.complete(PROCESS + 1, second)


def g1c_process(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE, end), poll(k2=[(end, VALUE)]))
    lines.add(PROCESS, send(2, VALUE, end))
    add_tail(lines, end, VALUE)


def g1c_realtime(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE, end), poll(k2=[(end, VALUE)]))
    lines.add(PROCESS + 1, send(2, VALUE, end))
    add_tail(lines, end, VALUE)


def g0(lines: Lines, end: int) -> None:
    first = [send(1, VALUE, end), send(2, VALUE, end + 1)]
    lines.invoke(PROCESS, first)
    lines.add(PROCESS + 1, send(1, VALUE + 1, end + 1), send(2, VALUE + 1, end))
    lines.complete(PROCESS, first)
    records = {
        "k1": [(end, VALUE), (end + 1, VALUE + 1)],
        "k2": [(end, VALUE + 1), (end + 1, VALUE)],
    }
    lines.add(PROCESS + 2, poll(**records), function="poll")


def polls(*ways: Sequence[int], function: str = "assign") -> Plant:
    """Return a plant of one consumer whose operations poll the values at these places."""

    def plant(lines: Lines, end: int) -> None:
        add_tail(lines, end, *range(VALUE, VALUE + 4))
        lines.add(PROCESS, 1, function=function)
        for way in ways:
            lines.add(PROCESS, poll(k1=[(end + place, VALUE + place) for place in way]))

    return plant


def nonmonotonic_send(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE + 1, end + 1), function="send")
    lines.add(PROCESS, send(1, VALUE, end), function="send")
    add_tail(lines, end, VALUE, VALUE + 1)


def int_nonmonotonic_send(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE + 1, end + 1), send(1, VALUE, end))
    add_tail(lines, end, VALUE, VALUE + 1)


def int_send_skip(lines: Lines, end: int) -> None:
    lines.add(PROCESS, send(1, VALUE, end), send(1, VALUE + 2, end + 2))
    add_tail(lines, end, VALUE, VALUE + 1, VALUE + 2)


PLANTS: dict[str, tuple[Plant, set[str]]] = {
    # Each with the names that must come with it.
    "inconsistent-offsets": (inconsistent_offsets, set()),
    "duplicate": (duplicate, set()),
    "lost-write": (lost_write, {"unseen"}),
    "unseen": (unseen, set()),
    "G1a": (g1a, set()),
    "precommitted-read": (precommitted_read, set()),
    "G1c": (g1c, set()),
    "G1c-process": (g1c_process, set()),
    "G1c-realtime": (g1c_realtime, set()),
    "int-poll-skip": (polls((0, 1, 3)), set()),
    "int-nonmonotonic-poll": (polls((0, 1, 1)), set()),
    "poll-skip": (polls((0, 1), (3,)), set()),
    "nonmonotonic-poll": (polls((0, 1, 2), (1, 2)), set()),
    "nonmonotonic-send": (nonmonotonic_send, set()),
    "int-nonmonotonic-send": (int_nonmonotonic_send, set()),
}
LEGAL: dict[str, Plant] = {
    "G0": g0,
    "int-send-skip": int_send_skip,
    "poll-skip": polls((0,), (2,), function="subscribe"),
    "nonmonotonic-poll": polls((0, 1), (1,), function="subscribe"),
}


def end_of(lines: Sequence[Line]) -> int:
    """Return an offset after all that a history has."""
    steps = [step for line in lines if line["f"] in {"poll", "txn"} for step in line["v"]]
    polls = [step[1] for step in steps if step[0] == "poll" and len(step) > 1]
    offsets = [offset for found in polls for records in found.values() for offset, _ in records]
    return max(offsets, default=0) + 1000


def planted(seed: int, plant: Plant) -> Lines:
    """Return a sound history with the lines of a plant at random places, in their order."""
    lines = Lines(history_of(seed))
    added = Lines()
    plant(added, end_of(lines.lines))
    random = Random(seed)
    places = sorted(random.randint(0, len(lines.lines)) for _ in added.lines)
    merged: list[Any] = list(lines.lines)
    for place, line in reversed([*zip(places, added.lines, strict=True)]):
        merged.insert(place, line)
    return Lines(merged)


@pytest.mark.parametrize("name", PLANTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_planted_anomaly_is_found_and_no_other_one(name: str, seed: int) -> None:
    plant, implied = PLANTS[name]
    assert broken_by(planted(seed, plant).report()) == {name, *implied}


@pytest.mark.parametrize("name", LEGAL)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_planted_anomaly_that_is_legal_is_found_and_breaks_nothing(name: str, seed: int) -> None:
    before = Lines(history_of(seed)).report()
    report = planted(seed, LEGAL[name]).report()
    assert report.is_sound
    added = Counter(report.counts) - Counter(before.counts)
    assert name in {kind.anomaly.label for kind in added}
