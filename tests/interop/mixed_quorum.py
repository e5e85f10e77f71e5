"""A quorum of both kinds of controllers, ours and real Kafka's, each in a process of its own."""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from tests.support.kafka.java import Java
from tests.support.node import NO_VOTERS, STANDALONE, Node
from tests.support.quorum.quorum import Quorum, controllers, voter_ids
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse

OURS, REAL = 1, 2
CLUSTER_WIDE = (4, "")
KEY = "kvorum.quorum.target.voters"
# The parts of a real node that records go through: what they log as an error concerns the target
# voters. Others fail now and then when a node starts or stops, or while no node leads.
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
_SETTINGS = {
    "process.roles": "controller",
    # Snapshots after a few records, so that the target voters go through snapshots as well.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    # A broker that a test plays sends no more heartbeats than the first.
    "broker.session.timeout.ms": "600000",
}


def both_kinds(folder: Path, java: Java) -> Quorum:
    """Return a controller of ours and a real one, neither formatted nor started."""
    return Quorum([*controllers(folder, [OURS]), *controllers(folder, [REAL], java=java)])


def formed(
    folder: Path,
    java: Java,
    *,
    ours: Collection[int],
    real: Collection[int],
    first: int,
    options: Sequence[str] = (),
) -> Quorum:
    """Format controllers: `first` is a quorum of its own, the others are observers.

    The first one is formatted with `options` too.
    """
    made = Quorum(
        [*controllers(folder, ours, _SETTINGS), *controllers(folder, real, _SETTINGS, java=java)]
    )
    for node_id in made.members:
        made.format(node_id, *((*STANDALONE, *options) if node_id == first else NO_VOTERS))
    return made


def are_observing(quorum: Quorum, *node_ids: int) -> None:
    quorum.until(
        f"{node_ids} fetch from the leader",
        lambda found: (
            {*node_ids} <= {one.replica_id for one in (*found.observers, *found.current_voters)}
        ),
    )


def is_wanted(address: str) -> bool:
    """Tell whether there are target voters; a real controller hides their value."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(*CLUSTER_WIDE, [KEY])
    with RawClient(address) as client:
        response = client.ask(DescribeConfigsRequest([resource]), DescribeConfigsResponse, 4)
    (result,) = response.results
    assert result.error_code == ErrorCode.NONE, result.error_message
    return any(config.name == KEY for config in result.configs)


def is_reached(quorum: Quorum, replicas: Collection[int]) -> None:
    """Wait until these are the voters and the target voters are cleared."""
    quorum.until(
        f"{replicas} are the voters and the target voters are cleared",
        lambda found: (
            voter_ids(found) == {*replicas}
            and not is_wanted(quorum.members[found.leader_id].address)
        ),
    )


def assert_nothing_wrong(one: Node) -> None:
    log = one.log_text
    assert faults(log) == []
    assert KEY in log, "it never saw the target voters"


def faults(log: str) -> list[str]:
    """Return the errors that a real node logged while it ran and that concern records."""
    errors = [line for line in STOPPING.sub("", log).splitlines() if ERROR.search(line)]
    return [line for line in errors if any(text in line for text in CONCERNED)]


def whole_log(one: Node) -> bytes:
    """Return the log of a stopped controller, with the snapshot that it begins with."""
    segments = sorted(one.metadata_log.glob("*.log"))
    snapshots = one.metadata_log.glob(f"{segments[0].stem}-*.checkpoint")
    return b"".join(file.read_bytes() for file in (*snapshots, *segments))
