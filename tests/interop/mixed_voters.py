"""Voters of one quorum, ours and real Kafka's, each in a process of its own."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from tests.support.kafka.java import Java
from tests.support.node import Node
from tests.support.ports import free_ports
from tests.support.waiting import wait_for

from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)

OURS, REAL = 1, 2


LOG = Path("__cluster_metadata-0", "00000000000000000000.log")


def both_kinds(folder: Path, java: Java) -> dict[int, Node]:
    """Return a controller of ours and a real one, neither formatted nor started."""
    ours, real = free_ports(2)
    return {
        OURS: Node("kvorum", OURS, ours, folder / str(OURS), java),
        REAL: Node("kafka", REAL, real, folder / str(REAL), java),
    }


def described(port: int) -> DescribeQuorumResponsePartitionData | None:
    """Ask a controller about the quorum; None where nobody answers."""
    topic = DescribeQuorumRequestTopicData(
        "__cluster_metadata", [DescribeQuorumRequestPartitionData()]
    )

    async def ask() -> DescribeQuorumResponsePartitionData:
        connection = await ClientConnection.open(
            host="127.0.0.1", port=port, client_id="test", timeout_ms=5000
        )
        try:
            response = await connection.request(
                DescribeQuorumRequest([topic]), DescribeQuorumResponse, timeout_ms=5000
            )
            return response.topics[0].partitions[0]
        finally:
            await connection.close()

    try:
        return asyncio.run(ask())
    except ClientConnectionError:
        return None


def last_words(voters: dict[int, Node]) -> str:
    """Return the end of what each has said: what a failure shows."""
    return "\n".join(voter.process.last_words() for voter in voters.values())


Described = DescribeQuorumResponsePartitionData


def until(voters: dict[int, Node], state: str, holds: Callable[[Described], bool]) -> Described:
    """Return what a leader says of the quorum once that `holds`."""

    def look() -> Described | None:
        for voter in voters.values():
            found = described(voter.port)
            if found is not None and found.error_code == ErrorCode.NONE and holds(found):
                return found
        return None

    return wait_for(look, state, otherwise=lambda: last_words(voters))


def voter_ids(found: Described) -> set[int]:
    return {state.replica_id for state in found.current_voters}
