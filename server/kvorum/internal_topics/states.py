"""Kafka's names of the states that records of internal topics hold as numbers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

# Of a transaction: TransactionState.
TRANSACTION_STATES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "Empty",
        1: "Ongoing",
        2: "PrepareCommit",
        3: "PrepareAbort",
        4: "CompleteCommit",
        5: "CompleteAbort",
        6: "Dead",
        7: "PrepareEpochFence",
    }
)

# Of a record for a share group: RecordState.
DELIVERY_STATES: Final[Mapping[int, str]] = MappingProxyType(
    {0: "AVAILABLE", 1: "ACQUIRED", 2: "ACKNOWLEDGED", 3: "ARCHIVING", 4: "ARCHIVED"}
)

# Of a member of a consumer or share group: MemberState.
MEMBER_STATES: Final[Mapping[int, str]] = MappingProxyType(
    {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS", 127: "UNKNOWN"}
)

# Of a member of a streams group: MemberState, another one.
STREAMS_MEMBER_STATES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS", 127: "UNKNOWN"}
)

# Of a segment in remote storage: RemoteLogSegmentState.
REMOTE_SEGMENT_STATES: Final[Mapping[int, str]] = MappingProxyType(
    {
        0: "COPY_SEGMENT_STARTED",
        1: "COPY_SEGMENT_FINISHED",
        2: "DELETE_SEGMENT_STARTED",
        3: "DELETE_SEGMENT_FINISHED",
    }
)

# Of the deletion of a partition from remote storage: RemotePartitionDeleteState.
REMOTE_PARTITION_DELETE_STATES: Final[Mapping[int, str]] = MappingProxyType(
    {0: "DELETE_PARTITION_MARKED", 1: "DELETE_PARTITION_STARTED", 2: "DELETE_PARTITION_FINISHED"}
)
