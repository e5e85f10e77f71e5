"""Codes of access control entries, and the operations that a type of resource supports."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import IntEnum, unique
from types import MappingProxyType
from typing import Final

UNKNOWN_CODE: Final = 0
CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""
WILDCARD: Final = "*"
"""Any resource (where its pattern is LITERAL) or any host, in an access control entry."""


class _Code(IntEnum):
    """A code from another program; a value that is not defined here becomes UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> _Code:
        del value
        return cls(0)


@unique
class AclResourceType(_Code):
    """Types of resources."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


@unique
class PatternType(_Code):
    """The way in which the name of an entry or a filter matches the names of resources."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


@unique
class PermissionType(_Code):
    """Whether an entry allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@unique
class AclOperation(_Code):
    """Operations that an entry allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


IMPLYING: Final[Mapping[AclOperation, frozenset[AclOperation]]] = MappingProxyType(
    {
        AclOperation.DESCRIBE: frozenset(
            {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
        ),
        AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
    }
)
"""The operations that imply another one when they are allowed. Denying implies nothing."""

SUPPORTED_OPERATIONS: Final[Mapping[AclResourceType, tuple[AclOperation, ...]]] = MappingProxyType(
    {
        AclResourceType.TOPIC: (
            AclOperation.READ,
            AclOperation.WRITE,
            AclOperation.CREATE,
            AclOperation.DELETE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        ),
        AclResourceType.CLUSTER: (
            AclOperation.CREATE,
            AclOperation.ALTER,
            AclOperation.DESCRIBE,
            AclOperation.CLUSTER_ACTION,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
            AclOperation.IDEMPOTENT_WRITE,
        ),
        AclResourceType.GROUP: (
            AclOperation.READ,
            AclOperation.DELETE,
            AclOperation.DESCRIBE,
            AclOperation.DESCRIBE_CONFIGS,
            AclOperation.ALTER_CONFIGS,
        ),
    }
)
"""The operations on those resources whose authorized operations responses contain."""


def problem_with_codes(codes: Collection[int]) -> str | None:
    """Return why a request with these codes counts as one that cannot be read, None if it can.

    UNKNOWN may not be sent. Codes outside of the enumeration are another matter: they are refused
    by what answers the request.
    """
    return "it has an element that is UNKNOWN" if UNKNOWN_CODE in codes else None
