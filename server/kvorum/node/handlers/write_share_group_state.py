"""WriteShareGroupState (85): a leader has the state of share partitions kept."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.share_coordinator.share_state_rpc import WRITE
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[WriteShareGroupStateRequest], broker: BrokerServices
) -> Message:
    """Keep what has changed in each partition."""
    return await broker.share_coordinator.write_state(request.body)


API: Final = BrokerApi(
    request=WriteShareGroupStateRequest,
    permission=AclOperation.CLUSTER_ACTION,
    answer=answer,
    refuse=WRITE.refuse,
)
