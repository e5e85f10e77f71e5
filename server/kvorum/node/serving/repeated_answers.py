"""Answers as they were encoded, for requests that are repeated while nothing has changed.

Clients ask for versions and metadata again and again, all of them the same. What such an answer
depends on is the request's bytes, and immutable objects: an image of the metadata, for one.
"""

from collections.abc import Mapping
from operator import is_
from typing import Final, NamedTuple, TypeAlias

from kvorum.metadata.standard_authorizer import Principal
from kvorum.wire.primitives import Message

REQUEST_BYTES_MAX: Final = 1024
"""The size of the largest request that is compared with earlier ones."""
RESPONSE_BYTES_MAX: Final = 16 * 1024
"""The size of the largest answer that is kept."""
ANSWERS_MAX: Final = 256
"""The number of answers of one API that are kept: with the limit above, 4 MiB."""

Basis: TypeAlias = tuple[object, ...]
"""The immutable objects that an answer depends on; only the very same ones count as unchanged."""


class Question(NamedTuple):
    """A request without what its answer does not depend on; its body is still encoded.

    An answer may show what is its user's alone, as tokens are.
    """

    api_key: int
    api_version: int
    listener: str
    principal: Principal
    body: bytes


class RepeatedAnswer(NamedTuple):
    """The answer to a question: the request, the encoded response without its header, its errors.

    `error_counts` is how often each error code is in the response.
    """

    request: Message
    response: bytes
    error_counts: Mapping[int, int]


class _Known(NamedTuple):
    """The answers to one API's questions, for one basis."""

    basis: Basis
    answers: dict[Question, RepeatedAnswer]


class RepeatedAnswers:
    """The answers that are known, of each API for the basis that was asked for last."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def find(self, question: Question, basis: Basis) -> RepeatedAnswer | None:
        """Return the answer to a question; None where it is not known for this basis."""
        known = self._known.get(question.api_key)
        if known is None or not _is_same(known.basis, basis):
            return None
        return known.answers.get(question)

    def keep(self, question: Question, basis: Basis, answer: RepeatedAnswer) -> None:
        """Keep an answer, unless it is large or there are many; those of another basis go."""
        if len(answer.response) > RESPONSE_BYTES_MAX:
            return
        known = self._known.get(question.api_key)
        if known is None or not _is_same(known.basis, basis):
            known = self._known[question.api_key] = _Known(basis, {})
        if len(known.answers) < ANSWERS_MAX:
            known.answers[question] = answer


def _is_same(one: Basis, other: Basis) -> bool:
    return len(one) == len(other) and all(map(is_, one, other))
