"""What a broker says to its controller, for those who take a broker's place."""

from kvorum.metadata.features import supported_features
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from kvorum.wire.messages.broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationRequestFeature,
    BrokerRegistrationRequestListener,
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
        listeners=[BrokerRegistrationRequestListener("PLAINTEXT", "127.0.0.1", 1)],
        features=[
            BrokerRegistrationRequestFeature(name, levels.min, levels.max)
            for name, levels in supported_features().items()
        ],
        rack=None,
        log_dirs=[directory_id],
    )


def heartbeat(*, broker_epoch: int, broker_id: int = BROKER_ID) -> BrokerHeartbeatRequest:
    """Return the heartbeat of a broker that has read everything and wants to be unfenced."""
    return BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        current_metadata_offset=EVERYTHING,
    )
