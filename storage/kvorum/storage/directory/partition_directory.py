"""The names of partitions' directories that are no current replica's (Kafka's LocalLog).

A directory is renamed before it is removed: ``-delete`` for a deleted partition, ``-stray`` for one
that the metadata does not know. A replica that moves to another log directory is copied to one
that ends in ``-future``, and takes its proper name in the end.
"""

import re
from typing import Final

from kvorum.storage.names import parse_partition_directory
from kvorum.storage.topic_partition import TopicPartition

DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
FUTURE_SUFFIX: Final = "-future"
NAME_LENGTH_MAX: Final = 255
UNIQUE_BYTES: Final = 16
_SUFFIXED: Final = re.compile(r"(.+-\d+)\.[0-9a-zA-Z]+(-delete|-stray|-future)")


def suffix_of(name: str) -> str | None:
    """Return the suffix of a directory that is not a current replica's; None for any other."""
    found = _SUFFIXED.fullmatch(name)
    return None if found is None else found.group(2)


def current_name(name: str) -> str:
    """Return the name that a directory has, or had, as that of a current replica."""
    found = _SUFFIXED.fullmatch(name)
    return name if found is None else found.group(1)


def future_partition(name: str) -> TopicPartition | None:
    """Return the partition of a future replica's directory; None for any other name."""
    found = _SUFFIXED.fullmatch(name)
    if found is None or found.group(2) != FUTURE_SUFFIX:
        return None
    parsed = parse_partition_directory(found.group(1))
    return None if parsed is None else TopicPartition(*parsed)


def future_name(topic_partition: TopicPartition, unique: bytes) -> str:
    """Return the name of a future replica's directory; it is never cut (Kafka's logFutureDirName).

    With a long topic name it is longer than a file name may be: such a replica cannot move.
    """
    return f"{topic_partition}.{unique.hex()}{FUTURE_SUFFIX}"


def has_future_name(topic_partition: TopicPartition) -> bool:
    """Return whether the directory of a future replica can have its name."""
    return len(future_name(topic_partition, bytes(UNIQUE_BYTES))) <= NAME_LENGTH_MAX


def leaving_name(topic_partition: TopicPartition, unique: bytes, suffix: str) -> str:
    """Return a name for a partition's directory that leaves; `unique` tells several apart.

    A long topic name is cut so that the whole is no longer than a file name may be.
    """
    end = f"-{topic_partition.partition}.{unique.hex()}{suffix}"
    return topic_partition.topic[: NAME_LENGTH_MAX - len(end)] + end
