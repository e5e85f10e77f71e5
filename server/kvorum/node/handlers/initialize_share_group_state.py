"""InitializeShareGroupState (83): a group coordinator begins the state of share partitions."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.share_coordinator.share_state_rpc import INITIALIZE
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[InitializeShareGroupStateRequest], broker: BrokerServices
) -> Message:
    """Begin the state of each partition, or begin it again."""
    return await broker.share_coordinator.initialize_state(request.body)


API: Final = BrokerApi(
    request=InitializeShareGroupStateRequest,
    permission=AclOperation.CLUSTER_ACTION,
    answer=answer,
    refuse=INITIALIZE.refuse,
)
