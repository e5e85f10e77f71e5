"""A quorum of both kinds of controllers, ours and real Kafka's, each in a process of its own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from tests.support.kafka.java import Java
from tests.support.node import NO_VOTERS, STANDALONE, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.node.outbound.client_connection import ClientConnection, ClientConnectionError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsRequestDescribeConfigsResource,
    DescribeConfigsResponse,
)
from kvorum.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
)

OURS, REAL = 1, 2


def both_kinds(folder: Path, java: Java) -> dict[int, Node]:
    """Return a controller of ours and a real one, neither formatted nor started."""
    settings = {"process.roles": "controller"}
    return {
        OURS: Node(folder / str(OURS), settings, node_id=OURS),
        REAL: Node(folder / str(REAL), settings, node_id=REAL, java=java),
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
            found = described(voter.controller_port)
            if found is not None and found.error_code == ErrorCode.NONE and holds(found):
                return found
        return None

    return wait_for(look, state, otherwise=lambda: last_words(voters))


def voter_ids(found: Described) -> set[int]:
    return {state.replica_id for state in found.current_voters}


CLUSTER_WIDE = (4, "")
KEY = "kvorum.quorum.target.voters"
# The parts of a real node that records go through: what they log as an error concerns the wish.
# Others fail now and then when a node starts or stops, or while nobody leads.
CONCERNED = (
    " fault",
    "Fault",
    "ConfigPublisher",
    "ConfigurationControlManager",
    "Loader",
    "Snapshot",
    KEY,
)
# A real node that stops closes its parts while others still use them, and says so as a fault: its
# loader reads from a log that is closed, or has no publishers yet where the start was not over.
STOPPING = re.compile(
    r"Terminating process due to signal.*?(?=Registered signal handlers|\Z)", re.DOTALL
)
ERROR = re.compile(" ERROR | FATAL ")
Controllers = dict[int, Node]


_SETTINGS = {
    "process.roles": "controller",
    # Snapshots after a few records, so that the wish goes through snapshots as well.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    # A broker that a test plays sends no more heartbeats than the first.
    "broker.session.timeout.ms": "600000",
}


def formed(
    folder: Path,
    java: Java,
    *,
    ours: Collection[int],
    real: Collection[int],
    first: int,
) -> Controllers:
    """Format controllers: `first` is a quorum of its own, the others are observers."""
    made = {
        node_id: Node(
            folder / str(node_id),
            _SETTINGS,
            node_id=node_id,
            java=None if node_id in ours else java,
        )
        for node_id in (*ours, *real)
    }
    servers = ",".join(one.address for one in made.values())
    for node_id, one in made.items():
        one.configure({"controller.quorum.bootstrap.servers": servers})
        one.format(STANDALONE if node_id == first else NO_VOTERS)
    return made


def end(controllers: Controllers) -> None:
    """Kill whoever still runs."""
    for one in controllers.values():
        one.kill()


def start(controllers: Mapping[int, Node], *node_ids: int) -> None:
    for node_id in node_ids:
        controllers[node_id].launch()


def are_observing(controllers: Controllers, *node_ids: int) -> None:
    """Wait until these replicas fetch from the leader."""
    until(
        controllers,
        f"{node_ids} fetch from the leader",
        lambda found: (
            {*node_ids} <= {one.replica_id for one in (*found.observers, *found.current_voters)}
        ),
    )


def is_wanted(address: str) -> bool:
    """Tell whether there is a wish; a real controller hides its value."""
    resource = DescribeConfigsRequestDescribeConfigsResource(*CLUSTER_WIDE, [KEY])
    with RawClient(address) as client:
        response = client.ask(DescribeConfigsRequest([resource]), DescribeConfigsResponse, 4)
    (result,) = response.results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return any(config.name == KEY for config in result.configs)


def is_reached(controllers: Controllers, replicas: Collection[int]) -> None:
    """Wait until these are the voters and the wish is cleared."""
    until(
        controllers,
        f"{replicas} are the voters and the wish is cleared",
        lambda found: (
            voter_ids(found) == {*replicas} and not is_wanted(controllers[found.leader_id].address)
        ),
    )


def assert_nothing_wrong(one: Node) -> None:
    log = one.log_text
    assert faults(log) == []
    assert KEY in log, "it never saw the wish"


def faults(log: str) -> list[str]:
    """Return the errors that a real node logged while it ran and that concern records."""
    errors = [line for line in STOPPING.sub("", log).splitlines() if ERROR.search(line)]
    return [line for line in errors if any(text in line for text in CONCERNED)]


def whole_log(one: Node) -> bytes:
    """Return the log of a stopped controller, with the snapshot that it begins with."""
    segments = sorted(one.metadata_log.glob("*.log"))
    snapshots = one.metadata_log.glob(f"{segments[0].stem}-*.checkpoint")
    return b"".join(file.read_bytes() for file in (*snapshots, *segments))
