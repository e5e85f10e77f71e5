"""The uniform assignor: members get equally many partitions and keep those that they have."""

from typing import Final

from kvorum.groups.assignors.partition_assignor import Assignment, GroupSpec
from kvorum.groups.assignors.uniform_heterogeneous import HeterogeneousGroup
from kvorum.groups.assignors.uniform_homogeneous import HomogeneousGroup

_NAME: Final = "uniform"


class UniformAssignor:
    """Kafka's UniformAssignor; racks do not matter to it."""

    @property
    def name(self) -> str:
        """The assignor's name."""
        return _NAME

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        """Return the new target of each member."""
        if not group.members:
            return {}
        if group.is_homogeneous:
            return HomogeneousGroup(group).assign()
        return HeterogeneousGroup(group).assign()
