"""ReadShareGroupStateSummary (87): a group coordinator reads the starts of share partitions."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.share_coordinator.share_state_rpc import READ_SUMMARY
from kvorum.wire.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ReadShareGroupStateSummaryRequest], broker: BrokerServices
) -> Message:
    """Read the start offset of each partition."""
    return await broker.share_coordinator.read_state_summary(request.body)


API: Final = BrokerApi(
    request=ReadShareGroupStateSummaryRequest,
    permission=AclOperation.CLUSTER_ACTION,
    answer=answer,
    refuse=READ_SUMMARY.refuse,
)
