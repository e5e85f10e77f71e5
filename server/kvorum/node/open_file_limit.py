"""The limit of this process's open files, and what connections and logs get of it.

Some descriptors are reserved for everything else. On a node with logs, connections get three
quarters of the others, or fewer where ``max.connections`` is less; the files of logs, which are
open in turns, get what is left.
"""

import resource
from typing import Final

RESERVED_DESCRIPTORS: Final = 128
"""Reserved for the metadata log, snapshots, connections to other nodes and what is short-lived."""
LOGS_SHARE: Final = 4
"""One in so many of the other descriptors is for the files of logs, on a node that has them."""
_UNLIMITED: Final = 2**31 - 1


def raise_descriptor_limit() -> None:
    """Raise this process's limit of open files to the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def connection_count_max(*, has_logs: bool) -> int:
    """Return how many connections a node may have."""
    usable = _usable_descriptors()
    return usable - usable // LOGS_SHARE if has_logs else usable


def log_file_count_max(connection_count: int | None = None) -> int:
    """Return how many files logs may have open, beside so many connections or as many as may be."""
    connections = connection_count_max(has_logs=True)
    if connection_count is not None:
        connections = min(connections, connection_count)
    return _usable_descriptors() - connections


def _usable_descriptors() -> int:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return _UNLIMITED
    return max(limit - RESERVED_DESCRIPTORS, limit // 2)
