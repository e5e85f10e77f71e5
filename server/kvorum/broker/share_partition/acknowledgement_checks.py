"""The shape that the acknowledgements of a partition must have in a request."""

from collections.abc import Iterable
from typing import Final

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType, ShareAcknowledgementBatch

_BEFORE_ALL_OFFSETS: Final = -1


def are_valid(
    batches: Iterable[ShareAcknowledgementBatch], *, supports_renewal: bool, renews: bool
) -> bool:
    """Return whether the batches of a partition are in order and well-formed.

    A request of a version that `supports_renewal` may renew locks if it says that it `renews` some.
    As in Kafka, a batch may begin where the one before it ends.
    """
    greatest = AcknowledgeType.RENEW if supports_renewal else AcknowledgeType.REJECT
    end = _BEFORE_ALL_OFFSETS
    for first, last, types in batches:
        if not end <= first <= last:
            return False
        if not types or (len(types) > 1 and len(types) != last - first + 1):
            return False
        if min(types) < AcknowledgeType.GAP or max(types) > greatest:
            return False
        if AcknowledgeType.RENEW in types and not renews:
            return False
        end = last
    return True
