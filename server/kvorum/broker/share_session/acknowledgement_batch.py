"""What a member says of records that it has acquired (Kafka's ShareAcknowledgementBatch)."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

GAP: Final = 0
"""There was no record at this offset."""
ACCEPT: Final = 1
RELEASE: Final = 2
REJECT: Final = 3
RENEW: Final = 4
"""The record is still being processed: its lock begins again."""


class ShareAcknowledgementBatch(NamedTuple):
    """Acknowledgements of the offsets from `first_offset` to `last_offset`.

    `types` has one number for all of them, or one for each.
    """

    first_offset: int
    last_offset: int
    types: Sequence[int]


def are_valid(
    batches: Iterable[ShareAcknowledgementBatch], *, supports_renewal: bool, renews: bool
) -> bool:
    """Return whether the batches of a partition are in order and well-formed.

    A request of a version that `supports_renewal` may renew locks if it says that it `renews` some.
    As in Kafka, a batch may begin where the one before it ends.
    """
    greatest = RENEW if supports_renewal else REJECT
    end = -1
    for first, last, types in batches:
        if not end <= first <= last:
            return False
        if not types or (len(types) > 1 and len(types) != last - first + 1):
            return False
        if min(types) < GAP or max(types) > greatest:
            return False
        if RENEW in types and not renews:
            return False
        end = last
    return True
