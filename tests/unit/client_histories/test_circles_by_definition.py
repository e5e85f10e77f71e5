"""Circles in random histories, beside the definition: every pair of operations is compared."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from random import Random

import pytest
from tests.unit.client_histories.history_lines import Lines, broken_by, names_in, poll, send

PARTITIONS = (1, 2)
CIRCLES = ("G0", "G1c", "G0-process", "G1c-process", "G0-realtime", "G1c-realtime")


@dataclass(eq=False)
class Transaction:
    """A transaction: the lines of its invocation and completion, its sends, and its polls."""

    process: int
    outcome: str
    begin: int = 0
    end: int = 0
    sent: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])
    """The offset of each key and value."""
    polled: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])


def random_history(random: Random) -> tuple[Lines, list[Transaction]]:
    """Return a history in which everything that was sent is anywhere, and anything was polled."""
    transactions = [
        Transaction(random.randint(1, 3), random.choice(["ok", "ok", "ok", "info"]))
        for _ in range(random.randint(2, 6))
    ]
    density = random.choice([0.3, 0.6])
    for value, (key, one) in enumerate(product(PARTITIONS, transactions)):
        if random.random() < density:
            one.sent[key, value] = -1
    for key in PARTITIONS:
        sent = [(one, record) for one in transactions for record in one.sent if record[0] == key]
        random.shuffle(sent)
        for offset, (one, record) in enumerate(sent):
            one.sent[record] = offset
    records = [record for one in transactions for record in one.sent]
    for one in transactions:
        others = [record for record in records if record not in one.sent]
        one.polled = random.sample(others, min(len(others), random.choice([0, 0, 1, 2])))
    return lines_of(random, transactions), transactions


def lines_of(random: Random, transactions: list[Transaction]) -> Lines:
    lines = Lines()
    offsets = {record: offset for one in transactions for record, offset in one.sent.items()}
    waiting = list(transactions)
    under_way: list[Transaction] = []
    while waiting or under_way:
        idle = [one for one in waiting if all(one.process != other.process for other in under_way)]
        one = random.choice([*idle, *under_way])
        found = {
            f"k{key}": [(offsets[record], record[1]) for record in one.polled if record[0] == key]
            for key in PARTITIONS
        }
        steps = [*(send(*record, offset) for record, offset in one.sent.items()), poll(**found)]
        if one in under_way:
            lines.complete(one.process, steps, outcome=one.outcome)
            one.end = len(lines.lines)
            under_way.remove(one)
        else:
            lines.invoke(one.process, steps)
            one.begin = len(lines.lines)
            waiting.remove(one)
            under_way.append(one)
    return lines


def pairs(
    transactions: list[Transaction],
) -> Iterator[tuple[str, Transaction, Transaction]]:
    """Yield every dependency between transactions that were done."""
    seen = {record for one in transactions if one.outcome == "ok" for record in one.polled}
    done = [one for one in transactions if one.outcome == "ok" or seen & one.sent.keys()]
    log = {
        (record[0], offset): one
        for one in transactions
        for record, offset in one.sent.items()
        if one in done or any(record in other.polled for other in transactions)
    }
    for (key, offset), one in log.items():
        later = [place for known, place in log if known == key and place > offset]
        if later:
            yield "ww", one, log[key, min(later)]
    for one, other in product(done, done):
        if one.sent.keys() & set(other.polled):
            yield "wr", one, other
        if one.process == other.process and one.begin < other.begin:
            yield "process", one, other
        if one.outcome == "ok" and one.end < other.begin:
            yield "realtime", one, other


def has_circle(transactions: list[Transaction], *kinds: str) -> bool:
    """Return whether some of the transactions depend on themselves."""
    seen = {record for one in transactions if one.outcome == "ok" for record in one.polled}
    done = {id(one) for one in transactions if one.outcome == "ok" or seen & one.sent.keys()}
    reached = {
        (id(one), id(other))
        for kind, one, other in pairs(transactions)
        if kind in kinds and one is not other and {id(one), id(other)} <= done
    }
    for middle in done:
        into = [one for one, other in reached if other == middle]
        out = [other for one, other in reached if one == middle]
        reached |= set(product(into, out))
    return any((one, one) in reached for one in done)


@pytest.mark.parametrize("part", range(10))
def test_circles_are_found_exactly_where_operations_depend_on_themselves(part: int) -> None:
    for seed in range(part * 60, part * 60 + 60):
        lines, transactions = random_history(Random(seed))
        report = lines.report()
        never = broken_by(report) & set(CIRCLES)
        names = names_in(report)
        orders = ("process", "realtime")
        found = {
            "ww": "G0" in names,
            "wr": "G1c" in never,
            "ww or wr": bool({"G0", "G1c"} & names),
            "wr with process": bool(never - {"G1c-realtime"}),
            "wr with orders": bool(never),
            "all": bool(names & set(CIRCLES)),
        }
        assert found == {
            "ww": has_circle(transactions, "ww"),
            "wr": has_circle(transactions, "wr"),
            "ww or wr": has_circle(transactions, "ww", "wr"),
            "wr with process": has_circle(transactions, "wr", "process"),
            "wr with orders": has_circle(transactions, "wr", *orders),
            "all": has_circle(transactions, "ww", "wr", *orders),
        }, seed
