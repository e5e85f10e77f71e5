"""ConsumerGroupHeartbeat (68): refused, as by Kafka without group.version.

It is listed all the same, as Kafka lists it: a client that wants the consumer protocol then gets
UNSUPPORTED_VERSION at its first request. librdkafka waits for ever where the API is not listed.
"""

from typing import Final

from kvorum.metadata.api import NONE, RequestError, refused_by_code
from kvorum.metadata.features import GROUP_VERSION_FEATURE
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
    """Refuse the request: brokers of kvorum coordinate classic groups only.

    Where the cluster has group.version, real brokers serve the protocol. Members of their groups
    are refused with an error upon which they wait for such a broker.
    """
    if broker.loader.published.features.level(GROUP_VERSION_FEATURE) > 0:
        broker.groups.runtime.context_for(request.body.group_id)
    raise RequestError(ErrorCode.UNSUPPORTED_VERSION)


API: Final = BrokerApi(
    request=ConsumerGroupHeartbeatRequest,
    permission=NONE,
    answer=answer,
    refuse=refused_by_code(ConsumerGroupHeartbeatResponse),
)
