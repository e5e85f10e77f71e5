"""The check that a broker is still the incarnation it thinks it is."""

from __future__ import annotations

from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode


def registration_of_epoch(cluster: ClusterImage, broker_id: int, epoch: int) -> BrokerRegistration:
    """Return the registration, or raise `RequestError` STALE_BROKER_EPOCH where it is another."""
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
