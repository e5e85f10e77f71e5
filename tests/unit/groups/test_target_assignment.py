"""The target assignment of a group whose assignor fails."""

from typing import Final, cast

import pytest

from kvorum.groups.assignors.partition_assignor import Assignment, GroupSpec, PartitionAssignorError
from kvorum.groups.modern_group.target_assignment import assigned_targets
from kvorum.metadata.api import RequestError
from kvorum.wire.error_codes import ErrorCode

ANY_GROUP: Final = cast("GroupSpec", None)


class FailingAssignor:
    name = "failing"

    def assign(self, group: GroupSpec) -> dict[str, Assignment]:
        raise PartitionAssignorError(f"{group} cannot be assigned")


def test_an_assignor_that_fails_is_answered_without_a_reason_as_by_kafka() -> None:
    with pytest.raises(RequestError) as caught:
        assigned_targets(FailingAssignor(), ANY_GROUP)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert caught.value.message is None
