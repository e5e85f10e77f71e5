"""ReadShareGroupState (84): a new leader reads the state of share partitions."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.share_coordinator.share_state_rpc import READ
from kvorum.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ReadShareGroupStateRequest], broker: BrokerServices
) -> Message:
    """Read the state of each partition, and keep the leader's epoch."""
    return await broker.share_coordinator.read_state(request.body)


API: Final = BrokerApi(
    request=ReadShareGroupStateRequest,
    permission=AclOperation.CLUSTER_ACTION,
    answer=answer,
    refuse=READ.refuse,
)
