"""The dependencies of a history: the operations of its parts."""

from tests.unit.client_histories.history_lines import Lines, send
from tests.unit.peak_memory import peak_memory_below

from kvorum.client_histories.dependencies import Dependencies, Span
from kvorum.client_histories.history import OK
from kvorum.client_histories.reader import read_history

UNKNOWN = 20_000
SMALL_BYTES = 10_000
"""A fraction of a list of all operations."""


def test_a_part_is_found_without_a_copy_of_all_operations_of_unknown_outcome() -> None:
    """A history may have a part for each of them, so that the copies would take for ever."""
    lines = Lines()
    lines.invoke(0, [send(1, 0)])
    lines.complete(0, [send(1, 0, 0)])
    for process in range(1, UNKNOWN):
        lines.invoke(process, [send(1, process)])
    history = read_history(lines.texts())
    dependencies = Dependencies(history, bytearray(one == OK for one in history.outcomes))
    with peak_memory_below(SMALL_BYTES):
        found = dependencies.operations(Span(1, 4))
    assert found == [0, 1, 2]
    assert dependencies.operations(Span(4, 4)) == [2]
