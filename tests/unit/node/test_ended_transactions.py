"""The ends of transactions, told to those who expect them."""

from random import Random

from kvorum.node.broker.ended_transactions import EndedTransactions
from kvorum.simulation.events import Events, NodeClock
from kvorum.simulation.runtime import SimulatedRuntime


def transactions() -> EndedTransactions:
    events = Events()
    runtime = SimulatedRuntime(
        events, NodeClock(events), Random(1), turn=lambda callback: callback()
    )
    return EndedTransactions(runtime)


def test_an_end_raises_the_flags_of_its_id_and_no_others() -> None:
    ended = transactions()
    first, other, second = (ended.expect(name) for name in ("a", "b", "a"))
    ended.tell("a")
    assert [flag.is_set for flag in (first, other, second)] == [True, False, True]


def test_each_end_raises_a_flag_until_it_is_forgotten() -> None:
    ended = transactions()
    flag, given_up = ended.expect("a"), ended.expect("a")
    ended.forget("a", given_up)
    for _ in range(2):
        flag.clear()
        ended.tell("a")
        assert flag.is_set
    assert not given_up.is_set


def test_an_end_before_it_was_expected_does_not_count() -> None:
    ended = transactions()
    ended.tell("a")
    assert not ended.expect("a").is_set
