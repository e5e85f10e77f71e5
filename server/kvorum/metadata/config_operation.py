"""Kafka's AlterConfigOp.OpType: what an IncrementalAlterConfigs request does to a key.

A node without loggers refuses each change of a log level by name, as Kafka does.
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum, unique
from types import MappingProxyType
from typing import Final

from kvorum.metadata.api import RequestError, invalid_request
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.java_text import parse_java_integer

_NODE_ID_BITS: Final = 32


@unique
class Operation(IntEnum):
    """The kinds of operations on a key, with the numbers of the request."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


NOT_ALLOWED: Mapping[int, str] = MappingProxyType(
    {
        Operation.APPEND: "APPEND operation is not allowed for the BROKER_LOGGER resource",
        Operation.SUBTRACT: "SUBTRACT operation is not allowed for the BROKER_LOGGER resource",
    }
)


def parse_node_id(name: str, problem: str) -> int:
    """Return the id that names a node's resource; raises RequestError, with `problem`, without one.

    It is read as by Integer.parseInt.
    """
    try:
        return parse_java_integer(name, bits=_NODE_ID_BITS)
    except ValueError:
        raise invalid_request(problem) from None


def check_logger_changes(
    node_name: str, operations: Iterable[tuple[str, int, str | None]], *, node_id: int
) -> None:
    """Raise `RequestError` for the first of `operations` (logger, operation, level)."""
    asked_id = parse_node_id(node_name, f"Node id must be an integer, but it is: {node_name}")
    if asked_id != node_id:
        raise invalid_request(f"Unexpected node id. Expected {node_id}, but received {asked_id}")
    for name, operation, _ in operations:
        if operation in (Operation.SET, Operation.DELETE):
            raise RequestError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        raise invalid_request(
            NOT_ALLOWED.get(
                operation,
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource",
            )
        )
