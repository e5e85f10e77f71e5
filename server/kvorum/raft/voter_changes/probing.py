"""The probe of a node before it is recorded as a voter: which kraft.versions it can work at.

The response also shows that the node can be reached at the endpoint that is to be recorded. The
probe is an ApiVersions request; AddRaftVoter and UpdateRaftVoter send it before they append.
"""

from kvorum.raft.basics import Destination, Endpoint, ReplicaKey
from kvorum.raft.messages import ApiVersionsRequest, ApiVersionsResponse, RequestFailed
from kvorum.raft.replica import Replica


def send_probe(replica: Replica, now: float, *, key: ReplicaKey, endpoint: Endpoint) -> bool:
    """Ask a node for its kraft.versions; return False where a request to it is under way."""
    if not replica.peers.is_ready(key.id):
        return False
    replica.send(now, Destination(key.id, endpoint.host, endpoint.port), ApiVersionsRequest())
    return True


def probe_error(response: ApiVersionsResponse | RequestFailed) -> str | None:
    """Return Kafka's name of a probe's error; None where the probe succeeded."""
    if isinstance(response, ApiVersionsResponse):
        return response.error_name
    return "UNSUPPORTED_VERSION" if response.lacks_version else "BROKER_NOT_AVAILABLE"


def probed_versions(response: ApiVersionsResponse | RequestFailed) -> tuple[int, int] | None:
    """Return the kraft.versions in a node's response; None where it contains none."""
    return response.kraft_versions if isinstance(response, ApiVersionsResponse) else None
