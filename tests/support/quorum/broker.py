"""What takes a broker's place, so that controllers have somewhere to put partitions."""

from tests.support.combined_node import CLUSTER_ID
from tests.support.played_broker import (
    HEARTBEAT_VERSION,
    REGISTRATION_VERSION,
    heartbeat,
    registration,
)
from tests.support.quorum.members import Quorum
from tests.support.raw_client import RawClient

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import BrokerRegistrationResponse


def register_broker(quorum: Quorum) -> None:
    """Register a broker with the active controller, and have it unfenced."""
    quorum.wait_for(
        lambda: try_to_register(quorum.wait_for_leader().address), "a broker can be registered"
    )


def try_to_register(controller: str) -> bool | None:
    """Tell whether it worked; None, too, where this is no active controller, or not any more."""
    try:
        with RawClient(controller) as client:
            return _register(client) or None
    except OSError:
        return None


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
