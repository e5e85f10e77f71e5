"""AllocateProducerIds (67): hands a broker a block of ids for idempotent producers."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.broker_epochs import registration_of_epoch
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_code
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord

PRODUCER_IDS_PER_BLOCK: Final = 1_000
PRODUCER_ID_MAX: Final = 2**63 - 1


def allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest, context: ControllerRequestContext
) -> ControllerResult[AllocateProducerIdsResponse]:
    """Hand out the next block, and record where the block after it begins."""
    del context
    registration_of_epoch(image.cluster, request.broker_id, request.broker_epoch)
    first = max(image.next_producer_id, 0)
    if first > PRODUCER_ID_MAX - PRODUCER_IDS_PER_BLOCK:
        raise RequestError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Exhausted all producerIds as the next block's end producerId has exceeded the "
            "int64 type limit",
        )
    record = ProducerIdsRecord(
        broker_id=request.broker_id,
        broker_epoch=request.broker_epoch,
        next_producer_id=first + PRODUCER_IDS_PER_BLOCK,
    )
    response = AllocateProducerIdsResponse(
        producer_id_start=first, producer_id_len=PRODUCER_IDS_PER_BLOCK
    )
    return ControllerResult(response, ((record, 0),), is_atomic=False)


API: Final = ControllerApi(
    request=AllocateProducerIdsRequest,
    permission=AclOperation.CLUSTER_ACTION,
    decide=allocate_producer_ids,
    refuse=refused_by_code(AllocateProducerIdsResponse),
)
