"""Counting votes: pure arithmetic over the voters of one election."""

from __future__ import annotations

from collections.abc import Iterable


class VoteTally:
    """The answers of an election's voters so far; the nominee's own vote is given at once."""

    def __init__(self, voter_ids: Iterable[int], *, own_id: int) -> None:
        self._answers: dict[int, bool | None] = dict.fromkeys(voter_ids)
        if own_id in self._answers:
            self._answers[own_id] = True

    def record(self, voter_id: int, *, is_granted: bool) -> bool:
        """Note an answer; tell whether it counts: the first one of a voter does."""
        if self._answers.get(voter_id, is_granted) is not None:
            return False
        self._answers[voter_id] = is_granted
        return True

    @property
    def granted(self) -> tuple[int, ...]:
        """The ids of those who said yes, ascending."""
        return tuple(sorted(i for i, answer in self._answers.items() if answer is True))

    @property
    def unrecorded(self) -> tuple[int, ...]:
        """The ids of those who have not answered, ascending."""
        return tuple(sorted(i for i, answer in self._answers.items() if answer is None))

    @property
    def is_granted(self) -> bool:
        """Whether a majority said yes."""
        return len(self.granted) >= self._majority

    @property
    def is_rejected(self) -> bool:
        """Whether so many said no that a majority cannot be had any more."""
        return len(self.granted) + len(self.unrecorded) < self._majority

    @property
    def _majority(self) -> int:
        return len(self._answers) // 2 + 1
