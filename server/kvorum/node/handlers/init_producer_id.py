"""InitProducerId (22): an id and epoch for an idempotent or a transactional producer."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import BY_HANDLER, RequestError
from kvorum.node.handlers.transaction_requests import fenced_code, require_on_transactional_id
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.primitives import Message
from kvorum.wire.records.batch import NO_PRODUCER

NO_EPOCH: Final = -1
FIRST_VERSION_WITH_FENCED: Final = 4
"""Older clients know PRODUCER_FENCED by the name of INVALID_PRODUCER_EPOCH."""


async def answer(
    request: IncomingRequest[InitProducerIdRequest], broker: BrokerServices
) -> Message:
    """Return an id that no other producer has, or the one of the transactional id."""
    body = request.body
    if body.transactional_id is None:
        _require_idempotent_write(request)
    else:
        require_on_transactional_id(request, AclOperation.WRITE, body.transactional_id)
        if body.enable2_pc:
            require_on_transactional_id(
                request, AclOperation.TWO_PHASE_COMMIT, body.transactional_id
            )
    if (body.producer_id == NO_PRODUCER) != (body.producer_epoch == NO_EPOCH):
        # A producer that goes on names both.
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
    if body.transactional_id is not None:
        return await broker.transaction_coordinator.init_producer_id(body)
    return InitProducerIdResponse(
        producer_id=await broker.producer_ids.generate_producer_id(), producer_epoch=0
    )


def _require_idempotent_write(request: IncomingRequest[InitProducerIdRequest]) -> None:
    access = request.access
    if not (
        access.allows_on_cluster(AclOperation.IDEMPOTENT_WRITE, logs_denied=False)
        or access.allows_somewhere(AclOperation.WRITE, AclResourceType.TOPIC)
    ):
        raise RequestError.with_default_message(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _refuse(
    _request: InitProducerIdRequest, error: RequestError, version: int
) -> InitProducerIdResponse:
    code = fenced_code(error.code, is_known=version >= FIRST_VERSION_WITH_FENCED)
    return InitProducerIdResponse(error_code=code, producer_epoch=NO_EPOCH)


API: Final = BrokerApi(
    request=InitProducerIdRequest, permission=BY_HANDLER, answer=answer, refuse=_refuse
)
