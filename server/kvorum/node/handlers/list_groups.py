"""ListGroups (16): the groups that this broker coordinates."""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, refused_by_code
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kvorum.wire.primitives import Message


async def answer(request: IncomingRequest[ListGroupsRequest], broker: BrokerServices) -> Message:
    """List the groups that the client may know of."""
    body = request.body
    groups = broker.groups.list_groups(body.states_filter, body.types_filter)
    access = request.access
    if not access.allows_on_cluster(AclOperation.DESCRIBE, logs_denied=False):
        groups = [
            one
            for one in groups
            if access.allows_on_group(AclOperation.DESCRIBE, one.group_id, logs_denied=False)
        ]
    return ListGroupsResponse(groups=groups)


API: Final = BrokerApi(
    request=ListGroupsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(ListGroupsResponse),
)
