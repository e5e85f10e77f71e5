"""The check of a broker's epoch: a request must come from the registered incarnation."""

from kvorum.metadata.api import RequestError
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.wire.error_codes import ErrorCode


def registration_of_epoch(cluster: ClusterImage, broker_id: int, epoch: int) -> BrokerRegistration:
    """Return the registration; raise `RequestError` STALE_BROKER_EPOCH for another incarnation."""
    broker = cluster.brokers.get(broker_id)
    if broker is None:
        raise RequestError(
            ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}"
        )
    if broker.epoch != epoch:
        raise RequestError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}",
        )
    return broker
