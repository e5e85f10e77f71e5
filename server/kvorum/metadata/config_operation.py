"""Kafka's AlterConfigOp.OpType: what an IncrementalAlterConfigs request does to a key."""

from enum import IntEnum, unique


@unique
class Operation(IntEnum):
    """The kinds of operations on a key, with the numbers of the request."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
