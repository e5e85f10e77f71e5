"""InitProducerId (22): an id for an idempotent producer; transactions are not coordinated here."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import BY_HANDLER, RequestError
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records.batch import NO_PRODUCER

NO_EPOCH: Final = -1


async def answer(
    request: IncomingRequest[InitProducerIdRequest], broker: BrokerServices
) -> Message:
    """Return an id that no other producer has, with epoch 0."""
    body = request.body
    if body.transactional_id == "":
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
    if body.transactional_id is not None:
        raise _not_coordinated(request, broker)
    access = request.access
    if not (
        access.allows_on_cluster(AclOperation.IDEMPOTENT_WRITE)
        or access.allows_somewhere(AclOperation.WRITE, AclResourceType.TOPIC)
    ):
        raise RequestError.with_default_message(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (body.producer_id == NO_PRODUCER) != (body.producer_epoch == NO_EPOCH):
        # A producer that goes on names both.
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
    return InitProducerIdResponse(
        producer_id=await broker.producer_ids.generate_producer_id(), producer_epoch=0
    )


def _not_coordinated(
    request: IncomingRequest[InitProducerIdRequest], broker: BrokerServices
) -> RequestError:
    """Return the refusal of a transaction: no broker of this kind coordinates any.

    Where real brokers do, the client looks for the coordinator again.
    """
    if broker.transactions.is_coordinated:
        return RequestError.with_default_message(ErrorCode.NOT_COORDINATOR)
    broker.transactions.note_refused_client(request.header.client_id or "", request.client_host)
    return RequestError.with_default_message(ErrorCode.UNSUPPORTED_VERSION)


def _refuse(
    _request: InitProducerIdRequest, error: RequestError, _version: int
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error.code, producer_epoch=NO_EPOCH)


API: Final = BrokerApi(
    request=InitProducerIdRequest, permission=BY_HANDLER, answer=answer, refuse=_refuse
)
