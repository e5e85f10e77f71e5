"""The controllers that are registered with the active one."""

from __future__ import annotations

from tests.support.raw_client import RawClient

from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse


def registered_controllers(address: str) -> set[int]:
    with RawClient(address) as client:
        response = client.ask(DescribeClusterRequest(endpoint_type=2), DescribeClusterResponse, 1)
    return {one.broker_id for one in response.brokers}
