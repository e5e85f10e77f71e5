"""The key of a share partition: a partition of a topic, as one share group reads it (KIP-932)."""

from typing import Final, NamedTuple

from kvorum.wire.java_text import java_trim, parse_java_integer
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

SEPARATOR: Final = ":"
"""It separates the parts of a key's text; the group's id may contain it as well."""
PART_COUNT_MIN: Final = 3
PARTITION_BITS: Final = 32


class SharePartitionKey(NamedTuple):
    """A share partition: the group's id, the topic's id (16 bytes) and the partition's index."""

    group_id: str
    topic_id: bytes
    partition: int

    @property
    def coordinator_key(self) -> str:
        """The text by which FindCoordinator and the choice of a coordinator know it."""
        return SEPARATOR.join((self.group_id, uuid_to_text(self.topic_id), str(self.partition)))

    @classmethod
    def from_coordinator_key(cls, text: str) -> "SharePartitionKey":
        """Return the key with this text; raises ValueError for a text that is none."""
        # Java's String.split drops empty parts at the end.
        parts = text.rstrip(SEPARATOR).split(SEPARATOR)
        if len(parts) < PART_COUNT_MIN:
            raise ValueError(f"{text!r} is not of the form groupId:topicId:partition")
        group_id = SEPARATOR.join(parts[:-2])
        if not java_trim(group_id):
            raise ValueError(f"{text!r} names no group")
        topic_id = uuid_from_text(parts[-2])
        return cls(group_id, topic_id, parse_java_integer(parts[-1], bits=PARTITION_BITS))
