"""The assignors that a broker has."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kvorum.groups.assignors.partition_assignor import PartitionAssignor
from kvorum.groups.assignors.range_assignor import RangeAssignor
from kvorum.groups.assignors.uniform_assignor import UniformAssignor

_ASSIGNORS: Final[tuple[PartitionAssignor, ...]] = (UniformAssignor(), RangeAssignor())
ASSIGNORS: Final[Mapping[str, PartitionAssignor]] = MappingProxyType(
    {assignor.name: assignor for assignor in _ASSIGNORS}
)
"""By the names that ``group.consumer.assignors`` and members give."""
