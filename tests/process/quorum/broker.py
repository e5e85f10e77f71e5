"""What takes a broker's place, so that controllers have somewhere to put partitions."""

from tests.process.combined_node import CLUSTER_ID
from tests.process.quorum.members import Quorum, wait_for
from tests.unit.node.raw_client import RawClient

from kvorum.metadata.features import supported_features
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
    BrokerRegistrationResponse,
)

BROKER_ID = 100
DIRECTORY_ID = bytes([BROKER_ID]) * 16
# Beyond the end of any log of these tests: a broker that has read everything.
EVERYTHING = 2**40


def register_broker(quorum: Quorum) -> None:
    """Register a broker with the active controller, and have it unfenced."""
    wait_for(lambda: _try_at(quorum.wait_for_leader().address), "no broker can be registered")


def _try_at(controller: str) -> bool | None:
    """Tell whether it worked; None, too, where this is no active controller, or not any more."""
    try:
        with RawClient(controller) as client:
            return _register(client) or None
    except OSError:
        return None


def _register(client: RawClient) -> bool:
    registered = client.ask(_registration(), BrokerRegistrationResponse, 4)
    if registered.error_code == ErrorCode.NOT_CONTROLLER:
        return False
    assert registered.error_code == ErrorCode.NONE
    heartbeat = BrokerHeartbeatRequest(
        broker_id=BROKER_ID,
        broker_epoch=registered.broker_epoch,
        current_metadata_offset=EVERYTHING,
    )
    heard = client.ask(heartbeat, BrokerHeartbeatResponse, 1)
    if heard.error_code == ErrorCode.NOT_CONTROLLER:
        return False
    assert (heard.error_code, heard.is_fenced) == (ErrorCode.NONE, False)
    return True


def _registration() -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(
        broker_id=BROKER_ID,
        cluster_id=CLUSTER_ID,
        incarnation_id=DIRECTORY_ID,
        listeners=[BrokerRegistrationRequestListener("PLAINTEXT", "127.0.0.1", 1)],
        features=[
            BrokerRegistrationRequestFeature(name, levels.min, levels.max)
            for name, levels in supported_features().items()
        ],
        rack=None,
        log_dirs=[DIRECTORY_ID],
    )
