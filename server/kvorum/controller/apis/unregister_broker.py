"""UnregisterBroker (64): removes the registration of a broker that will not return."""

from typing import Final

from kvorum.controller import broker_changes
from kvorum.controller.api import ControllerApi, ControllerResult, check_record_count
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_message_or_default
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def unregister_broker(
    image: MetadataImage, request: UnregisterBrokerRequest, context: ControllerRequestContext
) -> ControllerResult[UnregisterBrokerResponse]:
    """Remove the broker from every ISR and ELR and unregister it, whether fenced or not."""
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


API: Final = ControllerApi(
    request=UnregisterBrokerRequest,
    permission=AclOperation.ALTER,
    decide=unregister_broker,
    refuse=refused_by_message_or_default(UnregisterBrokerResponse),
)
