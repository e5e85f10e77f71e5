"""The files of a log whose compaction was interrupted while one segment took the place of others.

A cleaned segment is written to ``*.cleaned`` files. Once they are durable they are renamed to
``*.swap``, the old segments to ``*.deleted``, and then the suffix is dropped. So:

1. as long as there is a ``*.cleaned`` file, the new segment may be incomplete: it does not count,
   and neither do the ``*.swap`` files of its offset and above; the old segments are all there;
2. a ``*.swap`` file without one belongs to a complete segment, and counts as a file without the
   suffix. What is left of the old segments, which lie in the offsets of the new one, does not
   count.

Old segments above the last batch of the new one stay, as with Kafka: they hold records that are
superfluous, and the next pass of the cleaner meets them again.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from kvorum.storage.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    parse_offset_name,
)


class InterruptedSwap(NamedTuple):
    """The files that do not count any more, and the ``*.swap`` files that do, by name."""

    removed: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()

    def lasting_names(self, names: Iterable[str]) -> dict[str, str]:
        """Return the files that count, each with the name that it has after the next start."""
        complete = frozenset(self.complete)
        removed = frozenset(self.removed)
        return {
            name: name.removesuffix(SWAP_SUFFIX) if name in complete else name
            for name in names
            if name not in removed
        }


NOT_INTERRUPTED = InterruptedSwap()


def interrupted_swap(names: Iterable[str], end_offset: Callable[[str], int]) -> InterruptedSwap:
    """Return the interrupted replacement that the names of a directory's files show.

    `end_offset` is asked for the offset at which the batches of a ``*.log.swap`` file end.
    """
    known = list(names)
    cleaned = _offsets(known, CLEANED_SUFFIX)
    swap = _offsets(known, SWAP_SUFFIX)
    if not cleaned and not swap:
        return NOT_INTERRUPTED
    undone = [*cleaned]
    if cleaned:
        incomplete_from = min(cleaned.values())
        undone += [name for name, offset in swap.items() if offset >= incomplete_from]
    complete = [name for name in swap if name not in undone]
    replaced = _replaced(known, complete, end_offset)
    return InterruptedSwap((*undone, *replaced), tuple(complete))


def _offsets(names: Iterable[str], suffix: str) -> dict[str, int]:
    """Return the segments' files that end in `suffix`, with their base offsets."""
    found: dict[str, int] = {}
    for name in names:
        parsed = parse_offset_name(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if parsed is not None:
            found[name] = parsed[0]
    return found


def _replaced(
    names: Iterable[str], complete: Iterable[str], end_offset: Callable[[str], int]
) -> list[str]:
    """Return the files of old segments that lie in the offsets of complete new ones."""
    logs = [name for name in complete if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if not logs:
        return []
    first = min(_offsets(logs, SWAP_SUFFIX).values())
    end = max(map(end_offset, logs))
    replaced: list[str] = []
    for name in names:
        parsed = parse_offset_name(name)
        if parsed is None or not first <= parsed[0] < end:
            continue
        # The state of producers at the first offset is as right as before (KAFKA-12520).
        if parsed != (first, PRODUCER_SNAPSHOT_SUFFIX):
            replaced.append(name)
    return replaced
