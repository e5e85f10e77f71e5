"""ListGroups (16): there are no groups, because there is no group coordinator."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.refusal import refused_by_code
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kvorum.wire.primitives import Message


async def answer(_request: IncomingRequest, _broker: BrokerServices) -> Message:
    """Return the empty list."""
    return ListGroupsResponse()


API: Final = BrokerApi(
    key=ApiKey.LIST_GROUPS,
    request=ListGroupsRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_code(ListGroupsResponse),
)
