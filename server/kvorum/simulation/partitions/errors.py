"""What a world raises where a claim does not hold."""

from __future__ import annotations


class BrokenPromiseError(Exception):
    """A claim does not hold; `claim` is its text."""

    def __init__(self, claim: str, told: str) -> None:
        super().__init__(f"{claim}: {told}")
        self.claim = claim
