"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, stays or leaves (KIP-848).

Version 1 (KIP-1082): the member brings its own id, and may subscribe to a regular expression.

Where the cluster has no group.version the API is listed all the same, as Kafka lists it: a client
that wants the consumer protocol then gets UNSUPPORTED_VERSION at its first request. librdkafka
waits for ever where the API is not listed.
"""

from typing import Final

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError, refused_by_own_message
from kvorum.node.handlers.group_requests import (
    asked,
    context_of,
    demand_consumer_protocol,
    require_on_group,
)
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.primitives import Message


async def answer(
    request: IncomingRequest[ConsumerGroupHeartbeatRequest], broker: BrokerServices
) -> Message:
    """Have the group decide, for a client that may read it and knows the topics that it names.

    The topics of a regular expression are looked at where the expression is resolved.
    """
    demand_consumer_protocol(broker)
    body = request.body
    require_on_group(request, AclOperation.READ, body.group_id)
    names = sorted(set(body.subscribed_topic_names or ()))
    if len(request.access.allowed_topics(AclOperation.DESCRIBE, names)) < len(names):
        raise RequestError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return await asked(
        broker.runtime, broker.groups.consumer_group_heartbeat, context_of(request), body
    )


API: Final = BrokerApi(
    request=ConsumerGroupHeartbeatRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=refused_by_own_message(ConsumerGroupHeartbeatResponse),
)
