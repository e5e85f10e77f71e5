"""FindCoordinator (10): the broker that leads the partition of a group, or of a transactional id.

Such brokers as this one coordinate no transactions and no share groups. Where there is
``__transaction_state``, other brokers do coordinate transactions: its leaders are named. Else this
broker names itself, and refuses InitProducerId: the clients of most languages show the error code
of that, while they hide that of FindCoordinator, or repeat the request.
"""

from typing import Final

from kvorum.broker.coordinators import (
    CoordinatorNode,
    broker_node,
    coordinator_node,
    is_transaction_state_known,
    transaction_coordinator,
)
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MANY_KEYS: Final = 4
FIRST_VERSION_WITH_SHARES: Final = 6
NO_ERROR: Final = "NONE"
"""The text for the absence of an error in the older versions."""
NOT_COORDINATED: Final = (
    "This broker coordinates classic groups, and neither transactions nor other groups."
)
GROUP, TRANSACTION, SHARE = range(3)


async def answer(
    request: IncomingRequest[FindCoordinatorRequest], broker: BrokerServices
) -> Message:
    """Return the coordinator of each key, or the reason why none is known."""
    body = request.body
    if body.key_type not in {GROUP, TRANSACTION, SHARE}:
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
    if request.version < FIRST_VERSION_WITH_MANY_KEYS:
        try:
            node = await _find(body.key, request, broker)
        except RequestError as error:
            return _refuse(body, error, request.version)
        return FindCoordinatorResponse(
            error_message=NO_ERROR, node_id=node.node_id, host=node.host, port=node.port
        )
    return FindCoordinatorResponse(
        coordinators=[await _coordinator(key, request, broker) for key in body.coordinator_keys]
    )


async def _coordinator(
    key: str, request: IncomingRequest[FindCoordinatorRequest], broker: BrokerServices
) -> FindCoordinatorResponse.Coordinator:
    try:
        node = await _find(key, request, broker)
    except RequestError as error:
        is_ours = error.message == NOT_COORDINATED
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        # Kafka leaves the text of an ordinary error out.
        message = error.message if is_ours else ""
        return _no_coordinator(key, error.code, message)
    return FindCoordinatorResponse.Coordinator(key, node.node_id, node.host, node.port)


async def _find(
    key: str, request: IncomingRequest[FindCoordinatorRequest], broker: BrokerServices
) -> CoordinatorNode:
    """Return the node; raises RequestError without one for the client."""
    body, access = request.body, request.access
    if body.key_type == SHARE:
        if request.version < FIRST_VERSION_WITH_SHARES:
            raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
        access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=body.NAME)
        raise RequestError(ErrorCode.INVALID_REQUEST, NOT_COORDINATED)
    if body.key_type == TRANSACTION:
        if not access.allows(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, key):
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            raise RequestError.with_default_message(code)
        return _transactional(key, request, broker)
    if not access.allows_on_group(AclOperation.DESCRIBE, key):
        raise RequestError.with_default_message(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups, publisher = broker.groups.runtime, broker.publisher
    partition = groups.partition_for(key)
    node = _leader(partition, request, broker)
    if node.node_id == broker.config.node_id:
        # The logs of a new topic take a moment. Until then a group's requests are refused here
        # (NOT_COORDINATOR), after which some clients wait for seconds.
        await publisher.wait_until(lambda: groups.coordinates(partition))
    return node


def _transactional(
    key: str, request: IncomingRequest[FindCoordinatorRequest], broker: BrokerServices
) -> CoordinatorNode:
    """Return the coordinator of a transactional id, or this broker where none is known."""
    image = broker.loader.published
    if not is_transaction_state_known(image):
        return _demand(broker_node(image, broker.config.node_id, request.listener))
    node = transaction_coordinator(image, key, request.listener)
    if node is not None and node.node_id == broker.config.node_id:
        raise RequestError(ErrorCode.INVALID_REQUEST, NOT_COORDINATED)
    return _demand(node)


def _leader(
    partition: int, request: IncomingRequest[FindCoordinatorRequest], broker: BrokerServices
) -> CoordinatorNode:
    """Return the leader of a partition of groups, on the listener of the request."""
    image = broker.loader.published
    if image.topics.by_name(GROUP_METADATA_TOPIC) is None:
        broker.topic_creator.begin_internal(GROUP_METADATA_TOPIC)
    return _demand(coordinator_node(image, GROUP_METADATA_TOPIC, partition, request.listener))


def _demand(node: CoordinatorNode | None) -> CoordinatorNode:
    if node is None:
        raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return node


def _no_coordinator(
    key: str, code: ErrorCode, message: str | None
) -> FindCoordinatorResponse.Coordinator:
    return FindCoordinatorResponse.Coordinator(
        key=key, node_id=-1, port=-1, error_code=code, error_message=message
    )


def _refuse(
    request: FindCoordinatorRequest, error: RequestError, version: int
) -> FindCoordinatorResponse:
    code, message = error.code, error.message_or_default
    if version < FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[_no_coordinator(key, code, message) for key in request.coordinator_keys]
    )


API: Final = BrokerApi(
    request=FindCoordinatorRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
