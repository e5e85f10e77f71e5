"""Target voters in DescribeQuorum's response and on /metrics, on a node's listeners."""

from tests.node.embedded_cluster import set_config_at
from tests.support.metrics_scrape import reassignment_figures
from tests.support.ports import free_ports
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.metadata.configs_image import ResourceType
from kvorum.testing import Cluster
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.own_messages.quorum_reassignment import QuorumReassignment
from kvorum.wire.quorum_reassignment_tag import reassignment_in
from kvorum.wire.uuid_text import uuid_to_text

OTHER_DISK = bytes([7]) * 16
METADATA = "__cluster_metadata"


def describe(address: str, topic: str = METADATA) -> DescribeQuorumResponse.PartitionData:
    wanted = DescribeQuorumRequest.TopicData(topic, [DescribeQuorumRequest.PartitionData()])
    with RawClient(address) as client:
        response = client.ask(DescribeQuorumRequest([wanted]), DescribeQuorumResponse, 2)
    return response.topics[0].partitions[0]


def told_by(address: str) -> QuorumReassignment | None:
    return reassignment_in(describe(address))


def want(address: str, value: str | None) -> None:
    """Want other voters, or none any more."""
    set_config_at(address, ResourceType.BROKER, "", "kvorum.quorum.target.voters", value)


def test_controller_and_broker_describe_a_reassignment_while_it_lasts() -> None:
    (metrics_port,) = free_ports(1)
    with Cluster(overrides={"kvorum.metrics.listener": f"127.0.0.1:{metrics_port}"}) as cluster:
        listeners = (cluster.controller_servers, cluster.bootstrap_servers)
        before = [describe(address) for address in listeners]
        assert [one.unknown_tagged_fields or None for one in before] == [None, None]
        assert reassignment_figures(metrics_port) == {
            "adding_voters": 0, "removing_voters": 0, "blocked_reason": 0,
        }  # fmt: skip
        want(cluster.bootstrap_servers, f"1:{uuid_to_text(OTHER_DISK)}")
        # The target voters are described at once, and what the reassignment waits for a moment
        # later.
        wait_for(lambda: reassignment_figures(metrics_port)["blocked_reason"], "a step is blocked")
        told = told_by(cluster.controller_servers)
        assert told is not None
        assert told.block_text
        (target,) = told.targets
        assert (target.replica_id, target.replica_directory_id) == (1, OTHER_DISK)
        assert (target.log_end_offset, target.last_fetch_timestamp) == (-1, -1)
        assert told_by(cluster.bootstrap_servers) == told
        assert reassignment_figures(metrics_port) == {
            "adding_voters": 1, "removing_voters": 1, "blocked_reason": told.block_reason,
        }  # fmt: skip
        refused = describe(cluster.controller_servers, topic="other")
        assert refused.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert reassignment_in(refused) is None
        want(cluster.controller_servers, None)
        assert [told_by(address) for address in listeners] == [None, None]
