"""The tag of DescribeQuorum's response with the target voters: read by us, skipped by others."""

import pytest

from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.quorum_reassignment_tag import REASSIGNMENT_TAG, add_reassignment, reassignment_in

TOLD = QuorumReassignment(
    targets=[
        QuorumReassignment.Target(4, bytes(range(16)), 90, 1900),
        QuorumReassignment.Target(5),
    ],
    block_reason=3,
    block_text="target 5 does not fetch from the leader",
)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_it_survives_every_version_of_the_response(version: int) -> None:
    partition = DescribeQuorumResponse.PartitionData(leader_id=1, unknown_tagged_fields=[(9, b"x")])
    add_reassignment(partition, TOLD)
    topic = DescribeQuorumResponse.TopicData("__cluster_metadata", [partition])
    encoded = DescribeQuorumResponse(topics=[topic]).encode(version)
    read = DescribeQuorumResponse.decode(encoded, version).topics[0].partitions[0]
    assert reassignment_in(read) == TOLD
    assert read.leader_id == 1
    assert read.unknown_tagged_fields is not None
    assert [tag for tag, _ in read.unknown_tagged_fields] == [9, REASSIGNMENT_TAG]


@pytest.mark.parametrize("tags", [None, [], [(9, b"x")], [(REASSIGNMENT_TAG, b"\xff")]])
def test_a_partition_without_a_readable_tag_has_no_reassignment(
    tags: list[tuple[int, bytes]] | None,
) -> None:
    assert reassignment_in(DescribeQuorumResponse.PartitionData(unknown_tagged_fields=tags)) is None
