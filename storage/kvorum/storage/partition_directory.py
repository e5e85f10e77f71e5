"""The names of partitions' directories, and of those that are on their way out (Kafka's LocalLog).

A directory is renamed before it is removed: ``-delete`` for a deleted partition, ``-stray`` for one
that the metadata does not know, ``-future`` for one that moves to another log directory.
"""

from __future__ import annotations

import re
from typing import Final

from kvorum.storage.topic_partition import TopicPartition

DELETE_SUFFIX: Final = "-delete"
STRAY_SUFFIX: Final = "-stray"
NAME_LENGTH_MAX: Final = 255
_LEAVING: Final = re.compile(r".+-\d+\.[0-9a-zA-Z]+(-delete|-stray|-future)")


def leaving_suffix(name: str) -> str | None:
    """Return the suffix of a directory that is on its way out; None for any other."""
    found = _LEAVING.fullmatch(name)
    return None if found is None else found.group(1)


def leaving_name(topic_partition: TopicPartition, unique: bytes, suffix: str) -> str:
    """Return a name for a partition's directory that leaves; `unique` tells several apart.

    A long topic name is cut so that the whole is no longer than a file name may be.
    """
    end = f"-{topic_partition.partition}.{unique.hex()}{suffix}"
    return topic_partition.topic[: NAME_LENGTH_MAX - len(end)] + end
