"""Checks of new topics: collisions of names, and the number of partitions of one request."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Final

from kvorum.metadata.request_error import RequestError
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
SEPARATORS: Final = "._"
"""The two characters that are the same in names of metrics; '.' sorts before '_'."""
SEPARATORS_MAX: Final = 8
"""Up to this number of them in a name, every spelling is looked up; beyond, all topics are."""


class CollidingNames:
    """The topics whose name differs from another one only in '.' against '_'.

    The metrics of such topics would have the same names.
    """

    def __init__(self, topics: TopicsImage) -> None:
        self._topics = topics
        self._by_unified_name: dict[str, str] | None = None

    def existing(self, name: str) -> str | None:
        """Return an existing topic that `name` collides with, or None."""
        count = sum(map(name.count, SEPARATORS))
        if count == 0:
            return None
        if count <= SEPARATORS_MAX:
            return next(filter(self._topics.ids.__contains__, _spellings(name)), None)
        return self._by_metric_name().get(_unified(name))

    def _by_metric_name(self) -> dict[str, str]:
        if self._by_unified_name is None:
            self._by_unified_name = {
                _unified(existing): existing for existing in sorted(self._topics.ids, reverse=True)
            }
        return self._by_unified_name


def _spellings(name: str) -> Iterator[str]:
    """Yield every name whose metrics have the names of those of `name`, in order."""
    choices = [SEPARATORS if character in SEPARATORS else character for character in name]
    return map("".join, itertools.product(*choices))


def _unified(name: str) -> str:
    """Return `name` as it appears in names of metrics."""
    return name.replace(".", "_")


def check_total(counts: Iterable[int], message: str) -> None:
    """Raise `RequestError` POLICY_VIOLATION with `message` where a request adds too much."""
    if sum(counts) > PARTITIONS_PER_REQUEST_MAX:
        raise RequestError(ErrorCode.POLICY_VIOLATION, message)
