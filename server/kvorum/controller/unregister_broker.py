"""UnregisterBroker (64): the cluster forgets a broker that will not come back."""

from __future__ import annotations

from kvorum.controller import broker_changes
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.limits import check_record_count
from kvorum.controller.result import ControllerResult
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


def unregister_broker(
    image: MetadataImage, request: UnregisterBrokerRequest, context: ControllerContext
) -> ControllerResult[UnregisterBrokerResponse]:
    """Take the broker out of every ISR and ELR, then forget it; it need not be fenced."""
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None:
        raise RequestError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    records = tuple(broker_changes.unregister_broker(ClusterRules(image, context.settings), broker))
    check_record_count(records)
    context.sessions.forget(broker.id)
    return ControllerResult(UnregisterBrokerResponse(), records, is_atomic=False)
