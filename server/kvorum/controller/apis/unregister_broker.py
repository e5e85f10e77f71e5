"""UnregisterBroker (64): removes the registration of a broker that will not return."""

from typing import Final

from kvorum.controller import broker_changes
from kvorum.controller.api import (
    ControllerApi,
    ControllerResult,
    Pieces,
    check_record_count,
    gather,
)
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_message_or_default
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


def unregister_broker(
    image: MetadataImage, request: UnregisterBrokerRequest, context: ControllerRequestContext
) -> Pieces[ControllerResult[UnregisterBrokerResponse]]:
    """Remove the broker from every ISR and ELR and unregister it, whether fenced or not.

    This is done in pieces, and ends where there are more records than one request may have.
    """
    broker = image.cluster.brokers.get(request.broker_id)
    if broker is None:
        raise RequestError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    records: list[RecordAndVersion] = []
    rules = ClusterRules(image, context.settings)
    for _ in gather(records, broker_changes.unregister_broker(rules, broker)):
        check_record_count(records)
        yield
    check_record_count(records)
    context.sessions.forget(broker.id)
    return ControllerResult(UnregisterBrokerResponse(), tuple(records), is_atomic=False)


API: Final = ControllerApi(
    request=UnregisterBrokerRequest,
    permission=AclOperation.ALTER,
    decide=unregister_broker,
    refuse=refused_by_message_or_default(UnregisterBrokerResponse),
)
