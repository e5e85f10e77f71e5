"""Rules for topic names."""

import string
from typing import Final

from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

CLUSTER_METADATA_TOPIC: Final = "__cluster_metadata"
CLUSTER_METADATA_PARTITION: Final = 0
"""The only partition of the metadata log's topic."""
GROUP_METADATA_TOPIC: Final = "__consumer_offsets"
TRANSACTION_STATE_TOPIC: Final = "__transaction_state"
SHARE_GROUP_STATE_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset(
    {GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC}
)
NAME_LENGTH_MAX: Final = 249
LEGAL_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")


def check_topic_name(name: str) -> None:
    """Raise `RequestError` INVALID_TOPIC_EXCEPTION for an illegal name."""
    reason = reason_name_is_illegal(name)
    if reason is not None:
        raise RequestError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {reason}")


def reason_name_is_illegal(name: str) -> str | None:
    """Return the reason why `name` is illegal, in Kafka's words, None where it is legal."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if not LEGAL_CHARACTERS.issuperset(name):
        return (
            f"'{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None
