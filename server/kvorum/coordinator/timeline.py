"""Maps and values with a history: what was written can be taken back, what is committed be read.

Kafka's SnapshotRegistry and TimelineHashMap. An epoch is the offset after the last record that
is part of a state. A change belongs to the first epoch after the offset that was last written.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar, cast

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")

_ABSENT: Final = object()


@dataclass(slots=True)
class Timeline:
    """The epochs that all maps of a shard share, and the changes that are not yet committed."""

    written_offset: int = 0
    committed_offset: int = 0
    _changes: deque[tuple[int, Callable[[], None], Callable[[], None]]] = field(
        default_factory=deque[tuple[int, Callable[[], None], Callable[[], None]]]
    )

    @property
    def next_epoch(self) -> int:
        """The first epoch that a change made at this moment belongs to."""
        return self.written_offset + 1

    def changed(self, undo: Callable[[], None], settle: Callable[[], None]) -> None:
        """Keep what takes a change back, and what drops the history before it."""
        self._changes.append((self.next_epoch, undo, settle))

    def commit(self, offset: int) -> None:
        """Make the state at `offset` the one that reads of what is committed see."""
        self.committed_offset = offset
        while self._changes and self._changes[0][0] <= offset:
            self._changes.popleft()[2]()

    def revert(self, offset: int) -> None:
        """Take back what was changed after `offset` was written."""
        while self._changes and self._changes[-1][0] > offset:
            self._changes.pop()[1]()
        self.written_offset = offset


class TimelineMap(Generic[Key, Value]):
    """A map whose entries have a history of values by epoch; `epoch` None reads the newest."""

    __slots__ = ("_histories", "_newest_count", "_timeline")

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._histories: dict[Key, deque[tuple[int, object]]] = {}
        self._newest_count = 0

    def get(self, key: Key, epoch: int | None = None) -> Value | None:
        """Return the value at `epoch`; None without one."""
        history = self._histories.get(key)
        if history is None:
            return None
        value = history[-1][1] if epoch is None else _value_at(history, epoch)
        return None if value is _ABSENT else cast("Value", value)

    def set(self, key: Key, value: Value) -> None:
        """Put a value; at earlier epochs the map stays as it is."""
        self._change(key, value)

    def remove(self, key: Key) -> Value | None:
        """Remove a value and return it."""
        value = self.get(key)
        if value is not None:
            self._change(key, _ABSENT)
        return value

    def items(self, epoch: int | None = None) -> Iterator[tuple[Key, Value]]:
        """Yield keys and values at `epoch`; the map may change meanwhile."""
        for key, history in list(self._histories.items()):
            value = _value_at(history, epoch)
            if value is not _ABSENT:
                yield key, cast("Value", value)

    def values(self, epoch: int | None = None) -> Iterator[Value]:
        """Yield values at `epoch`; the map may change meanwhile."""
        return (value for _, value in self.items(epoch))

    @property
    def newest_count(self) -> int:
        """The number of keys with a value in the newest state; nothing is gone through for it."""
        return self._newest_count

    def is_empty(self) -> bool:
        """Return whether nothing is in the newest state."""
        return self._newest_count == 0

    def _change(self, key: Key, value: object) -> None:
        epoch = self._timeline.next_epoch
        history = self._histories.setdefault(key, deque())
        self._newest_count += int(value is not _ABSENT) - _newest_count_in(history)
        if history and history[-1][1] is _ABSENT:
            # A key that is put again after its removal is the last one, committed or not.
            self._histories[key] = self._histories.pop(key)
        if history and history[-1][0] == epoch:
            history[-1] = (epoch, value)
            return
        history.append((epoch, value))
        self._timeline.changed(lambda: self._undo(key), lambda: self._settle(key, epoch))

    def _undo(self, key: Key) -> None:
        history = self._histories.pop(key)
        self._newest_count -= _newest_count_in(history)
        history.pop()
        self._newest_count += _newest_count_in(history)
        if history:
            # The value before it is put again, in Kafka too: its key is the last one from here on.
            self._histories[key] = history

    def _settle(self, key: Key, epoch: int) -> None:
        history = self._histories[key]
        while history[0][0] < epoch:
            history.popleft()
        if len(history) == 1 and history[0][1] is _ABSENT:
            del self._histories[key]


class TimelineValue(Generic[Value]):
    """A value with a history of values by epoch; `epoch` None reads the newest."""

    __slots__ = ("_history", "_timeline")

    def __init__(self, timeline: Timeline, value: Value) -> None:
        self._timeline = timeline
        self._history: deque[tuple[int, object]] = deque([(0, value)])

    def get(self, epoch: int | None = None) -> Value:
        """Return the value at `epoch`; the first one at an epoch before it."""
        value = self._history[-1][1] if epoch is None else _value_at(self._history, epoch)
        return cast("Value", self._history[0][1] if value is _ABSENT else value)

    def set(self, value: Value) -> None:
        """Change the value; at earlier epochs it stays as it is."""
        epoch = self._timeline.next_epoch
        if self._history[-1][0] == epoch:
            self._history[-1] = (epoch, value)
            return
        self._history.append((epoch, value))
        self._timeline.changed(self._undo, lambda: self._settle(epoch))

    def _undo(self) -> None:
        self._history.pop()

    def _settle(self, epoch: int) -> None:
        while self._history[0][0] < epoch:
            self._history.popleft()


def _newest_count_in(history: deque[tuple[int, object]]) -> int:
    """Return how many values a key has in the newest state: 0 or 1."""
    return int(bool(history) and history[-1][1] is not _ABSENT)


def _value_at(history: deque[tuple[int, object]], epoch: int | None) -> object:
    for begins, value in reversed(history):
        if epoch is None or begins <= epoch:
            return value
    return _ABSENT
