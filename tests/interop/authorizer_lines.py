"""The lines of an authorizer's log about a user, without what each node draws."""

import re
from collections import Counter
from pathlib import Path
from typing import Final

from kvorum.metadata.authorizer_log import LOGGER_NAME

OWN_TOKEN: Final = re.compile(r"(?<=DelegationToken:LITERAL:)\S{22}")
"""The id of a token in a line, which each node draws."""
OF_NO_TOPIC: Final = "Topic:LITERAL: for request = TxnOffsetCommit "
"""The part of a line about a topic without a name.

Kafka asks its authorizer about this name for every id that no topic has; ours does not.
"""


def decisions_about(user: str, log: Path, start: int) -> Counter[str]:
    """Return the lines about a user in a node's log, from an offset on, without its own values."""
    with log.open("rb") as said:
        said.seek(start)
        lines = said.read().decode().splitlines()
    subject = f"Principal = User:{user} is "
    decisions = (
        line[line.index(subject) :].partition(f" ({LOGGER_NAME})")[0]
        for line in lines
        if subject in line and OF_NO_TOPIC not in line
    )
    return Counter(OWN_TOKEN.sub("a token", each) for each in decisions)
