"""The tag in DescribeQuorum's response that names the voters that are wanted (KIP-642).

KIP-642 wants the targets in the response, and Kafka's schema has no field for them. A tagged field
of the partition carries them, under a number that Kafka's schema does not use: clients skip tags
that they do not know, and brokers hand the response on as bytes.
"""

from typing import Final

from kvorum.wire.errors import DecodeError
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment

REASSIGNMENT_TAG: Final = 642
_VERSION: Final = 0
"""The one version of the message: it grows by tagged fields of its own."""


def add_reassignment(
    partition: DescribeQuorumResponse.PartitionData, reassignment: QuorumReassignment
) -> None:
    """Put the reassignment into the response's partition."""
    tags = partition.unknown_tagged_fields or []
    partition.unknown_tagged_fields = [*tags, (REASSIGNMENT_TAG, reassignment.encode(_VERSION))]


def reassignment_in(partition: DescribeQuorumResponse.PartitionData) -> QuorumReassignment | None:
    """Return the reassignment in the response's partition, None without one.

    A tag of this number that cannot be read has another meaning, and is ignored.
    """
    for tag, payload in partition.unknown_tagged_fields or ():
        if tag == REASSIGNMENT_TAG:
            try:
                return QuorumReassignment.decode(payload, _VERSION)
            except DecodeError:
                return None
    return None
