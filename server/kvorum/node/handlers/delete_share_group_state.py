"""DeleteShareGroupState (86): a group coordinator has the state of share partitions forgotten."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.share_coordinator.share_state_rpc import DELETE
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[DeleteShareGroupStateRequest], broker: BrokerServices
) -> Message:
    """Forget the state of each partition."""
    return await broker.share_coordinator.delete_state(request.body)


API: Final = BrokerApi(
    request=DeleteShareGroupStateRequest,
    permission=AclOperation.CLUSTER_ACTION,
    answer=answer,
    refuse=DELETE.refuse,
)
