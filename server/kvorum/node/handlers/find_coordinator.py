"""FindCoordinator (10): the leader of a group's partition, a transactional id's, a share's."""

from typing import Any, Final

from kvorum.broker.coordinators import CoordinatorNode, coordinator_node
from kvorum.coordinator.coordinator_type import CoordinatorType
from kvorum.coordinator.share_partition_key import SharePartitionKey
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.node.broker.coordinator.runtime import CoordinatorRuntime
from kvorum.node.coroutines import all_of
from kvorum.node.services import BrokerApi, BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MANY_KEYS: Final = 4
FIRST_VERSION_WITH_SHARES: Final = 6
NO_ERROR: Final = "NONE"
"""The text for the absence of an error in the older versions."""


async def answer(
    request: IncomingRequest[FindCoordinatorRequest], broker: BrokerServices
) -> Message:
    """Return the coordinator of each key, or the reason why none is known."""
    body = request.body
    kind = _type_of(body)
    if request.version < FIRST_VERSION_WITH_MANY_KEYS:
        try:
            node = await _find(kind, body.key, request, broker)
        except RequestError as error:
            return _refuse(body, error, request.version)
        return FindCoordinatorResponse(
            error_message=NO_ERROR, node_id=node.node_id, host=node.host, port=node.port
        )
    asked = [_coordinator(kind, key, request, broker) for key in body.coordinator_keys]
    if len(asked) == 1:
        return FindCoordinatorResponse(coordinators=[await asked[0]])
    # Each may wait for its topic, which cannot be made now and then.
    return FindCoordinatorResponse(coordinators=await all_of(broker.runtime, asked))


def _type_of(body: FindCoordinatorRequest) -> CoordinatorType:
    try:
        return CoordinatorType(body.key_type)
    except ValueError as error:
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST) from error


async def _coordinator(
    kind: CoordinatorType,
    key: str,
    request: IncomingRequest[FindCoordinatorRequest],
    broker: BrokerServices,
) -> FindCoordinatorResponse.Coordinator:
    try:
        node = await _find(kind, key, request, broker)
    except RequestError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        # Kafka leaves the text of an ordinary error out.
        return _no_coordinator(key, error.code, "")
    return FindCoordinatorResponse.Coordinator(key, node.node_id, node.host, node.port)


async def _find(
    kind: CoordinatorType,
    key: str,
    request: IncomingRequest[FindCoordinatorRequest],
    broker: BrokerServices,
) -> CoordinatorNode:
    """Return the node; raises RequestError without one for the client."""
    _require_permission(kind, key, request)
    match kind:
        case CoordinatorType.GROUP:
            return await _coordinator_node(kind, broker.groups.runtime, key, request, broker)
        case CoordinatorType.TRANSACTION:
            transactions = broker.transaction_coordinator.runtime
            return await _coordinator_node(kind, transactions, key, request, broker)
        case CoordinatorType.SHARE:
            shares = broker.share_coordinator.runtime
            share = _share_partition_key(key).coordinator_key
            return await _coordinator_node(kind, shares, share, request, broker)


def _share_partition_key(text: str) -> SharePartitionKey:
    try:
        return SharePartitionKey.from_coordinator_key(text)
    except ValueError as error:
        raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST) from error


def _require_permission(
    kind: CoordinatorType, key: str, request: IncomingRequest[FindCoordinatorRequest]
) -> None:
    """Raise RequestError for a client that may not know of the key, or that is too old."""
    access = request.access
    match kind:
        case CoordinatorType.GROUP:
            if not access.allows_on_group(AclOperation.DESCRIBE, key):
                raise RequestError.with_default_message(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        case CoordinatorType.TRANSACTION:
            if not access.allows(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, key):
                code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                raise RequestError.with_default_message(code)
        case CoordinatorType.SHARE:
            if request.version < FIRST_VERSION_WITH_SHARES:
                raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
            access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=request.body.NAME)


async def _coordinator_node(
    kind: CoordinatorType,
    runtime: CoordinatorRuntime[Any],
    key: str,
    request: IncomingRequest[FindCoordinatorRequest],
    broker: BrokerServices,
) -> CoordinatorNode:
    """Return the coordinator of a key; this broker, only when it has the partition's log."""
    partition = runtime.partition_for(key)
    node = await _leader(kind, partition, request, broker)
    if node.node_id == broker.config.node_id:
        # The logs of a new topic take a moment. Until then requests are refused here
        # (NOT_COORDINATOR), after which some clients wait for seconds.
        await broker.publisher.wait_until(lambda: runtime.coordinates(partition))
    return node


async def _leader(
    kind: CoordinatorType,
    partition: int,
    request: IncomingRequest[FindCoordinatorRequest],
    broker: BrokerServices,
) -> CoordinatorNode:
    """Return the leader of a partition, on the listener of the request; create a missing topic."""
    if broker.loader.published.topics.by_name(kind.topic) is None:
        await broker.topic_creator.create_internal(kind.topic)
    image = broker.loader.published
    return _demand(coordinator_node(image, kind.topic, partition, request.listener))


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
    code = error.code
    message = code.default_message
    if version < FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[_no_coordinator(key, code, message) for key in request.coordinator_keys]
    )


API: Final = BrokerApi(
    request=FindCoordinatorRequest, permission=PER_RESOURCE, answer=answer, refuse=_refuse
)
