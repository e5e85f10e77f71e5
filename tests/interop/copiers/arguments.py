"""The arguments of a program that copies records in transactions.

Each of `tests.interop.copiers` is a program that a user of one client would write: it reads what
other transactions committed, as a member of a group, and copies it. A transaction has copies and
the group's offset, and is held open for a while, so that a kill strikes within it. On any error
the program ends; its next life begins where the group is.
"""

import sys
from typing import Any, Final, NamedTuple

SESSION_TIMEOUT_MS: Final = 6_000
POLL_S: Final = 0.2
AT_ONCE: Final = 20
"""A poll gives at most so many records."""


class CopierArguments(NamedTuple):
    """The brokers' addresses, the name of the group and of the transactions, and two topics."""

    servers: str
    name: str
    source: str
    target: str
    hold_s: float
    """The time for which a transaction is held open."""


def consumer_settings(arguments: CopierArguments) -> dict[str, Any]:
    """Return the arguments of a consumer, which kafka-python and aiokafka name alike."""
    return {
        "bootstrap_servers": arguments.servers,
        "group_id": arguments.name,
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "isolation_level": "read_committed",
        "session_timeout_ms": SESSION_TIMEOUT_MS,
    }


def copier_arguments() -> CopierArguments:
    """Return the arguments of this process: SERVERS NAME SOURCE TARGET HOLD_MS."""
    servers, name, source, target, hold_ms = sys.argv[1:]
    return CopierArguments(servers, name, source, target, int(hold_ms) / 1000)
