"""A played broker: what it says to its controller, so that partitions have a place."""

from tests.support.node import CLUSTER_ID
from tests.support.quorum.quorum import Quorum
from tests.support.raw_client import RawClient

from kvorum.metadata.features import supported_features
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)

BROKER_ID = 100
REGISTRATION_VERSION = 4
HEARTBEAT_VERSION = 1
# Beyond the end of any log here: a broker that has read everything.
EVERYTHING = 2**40


def registration(*, cluster_id: str, broker_id: int = BROKER_ID) -> BrokerRegistrationRequest:
    """Return what a broker with one log directory registers with."""
    directory_id = bytes([broker_id]) * 16
    return BrokerRegistrationRequest(
        broker_id=broker_id,
        cluster_id=cluster_id,
        incarnation_id=directory_id,
        listeners=[BrokerRegistrationRequest.Listener("PLAINTEXT", "127.0.0.1", 1)],
        features=[
            BrokerRegistrationRequest.Feature(name, levels.min, levels.max)
            for name, levels in supported_features().items()
        ],
        rack=None,
        log_dirs=[directory_id],
    )


def heartbeat(*, broker_epoch: int, broker_id: int = BROKER_ID) -> BrokerHeartbeatRequest:
    """Return the heartbeat of a broker that has read everything and wants to be unfenced."""
    return BrokerHeartbeatRequest(
        broker_id=broker_id, broker_epoch=broker_epoch, current_metadata_offset=EVERYTHING
    )


def register_broker(quorum: Quorum) -> None:
    """Register a broker with the active controller, and have it unfenced."""
    quorum.wait_for(lambda: try_to_register(quorum.leader().address), "a broker can be registered")


def try_to_register(controller: str) -> bool:
    """Tell whether it worked: a controller that is not active, or not any more, refuses."""
    try:
        with RawClient(controller) as client:
            return _register(client)
    except OSError:
        return False


def _register(client: RawClient) -> bool:
    request = registration(cluster_id=CLUSTER_ID)
    registered = client.ask(request, BrokerRegistrationResponse, REGISTRATION_VERSION)
    if registered.error_code == ErrorCode.NOT_CONTROLLER:
        return False
    assert registered.error_code == ErrorCode.NONE
    beat = heartbeat(broker_epoch=registered.broker_epoch)
    heard = client.ask(beat, BrokerHeartbeatResponse, HEARTBEAT_VERSION)
    if heard.error_code == ErrorCode.NOT_CONTROLLER:
        return False
    assert (heard.error_code, heard.is_fenced) == (ErrorCode.NONE, False)
    return True
