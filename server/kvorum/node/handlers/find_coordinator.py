"""FindCoordinator (10): the broker that leads the partition of a group.

Transactions and share groups are coordinated nowhere in a cluster of such brokers. Kafka would have
clients repeat the request for ever while it has no such coordinator; they are refused instead.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC
from kvorum.metadata.acl_codes import AclOperation, AclResourceType
from kvorum.metadata.permission import PER_RESOURCE
from kvorum.metadata.request_error import RequestError
from kvorum.node.handlers.kinds import BrokerApi
from kvorum.node.services import BrokerServices
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.api_keys import ApiKey
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
)
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_MANY_KEYS: Final = 4
FIRST_VERSION_WITH_SHARES: Final = 6
NO_ERROR: Final = "NONE"
"""What the older versions send as the text of no error."""
NOT_COORDINATED: Final = "This broker coordinates groups of the classic protocol, nothing else."
GROUP, TRANSACTION, SHARE = range(3)


class _Coordinator(NamedTuple):
    node_id: int
    host: str
    port: int


async def answer(request: IncomingRequest, broker: BrokerServices) -> Message:
    """Return the coordinator of each key, or why there is none at the moment."""
    body = request.body
    assert isinstance(body, FindCoordinatorRequest)
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
    key: str, request: IncomingRequest, broker: BrokerServices
) -> FindCoordinatorResponseCoordinator:
    try:
        node = await _find(key, request, broker)
    except RequestError as error:
        if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            raise
        # Kafka leaves the text of an ordinary error out.
        message = error.message if error.message == NOT_COORDINATED else ""
        return _no_coordinator(key, error.code, message)
    return FindCoordinatorResponseCoordinator(key, node.node_id, node.host, node.port)


async def _find(key: str, request: IncomingRequest, broker: BrokerServices) -> _Coordinator:
    """Return the node; raises RequestError where there is none for the client."""
    body, access = request.body, request.access
    assert isinstance(body, FindCoordinatorRequest)
    if body.key_type == SHARE:
        if request.version < FIRST_VERSION_WITH_SHARES:
            raise RequestError.with_default_message(ErrorCode.INVALID_REQUEST)
        access.require_on_cluster(AclOperation.CLUSTER_ACTION, request=body.NAME)
        raise RequestError(ErrorCode.INVALID_REQUEST, NOT_COORDINATED)
    if body.key_type == TRANSACTION:
        if not access.allows(AclOperation.DESCRIBE, AclResourceType.TRANSACTIONAL_ID, key):
            code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            raise RequestError.with_default_message(code)
        raise RequestError(ErrorCode.INVALID_REQUEST, NOT_COORDINATED)
    if not access.allows_on_group(AclOperation.DESCRIBE, key):
        raise RequestError.with_default_message(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    node = _leader(broker.groups.partition_for(key), request, broker)
    if node.node_id == broker.config.node_id:
        # The logs of a new topic take a moment. Until then a group's requests are refused here
        # (NOT_COORDINATOR), after which some clients wait for seconds.
        await broker.replicas.wait_until_current()
    return node


def _leader(partition: int, request: IncomingRequest, broker: BrokerServices) -> _Coordinator:
    """Return the leader of a partition, on the listener of the request."""
    image = broker.loader.published
    topic = image.topics.by_name(GROUP_METADATA_TOPIC)
    if topic is None:
        broker.topic_creator.begin_internal(GROUP_METADATA_TOPIC)
    registration = None if topic is None else topic.partitions.get(partition)
    leader = None if registration is None else image.cluster.brokers.get(registration.leader)
    if leader is not None and not leader.is_fenced:
        endpoint = leader.endpoint(request.listener)
        if endpoint is not None:
            return _Coordinator(leader.id, endpoint.host, endpoint.port)
    raise RequestError.with_default_message(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def _no_coordinator(
    key: str, code: ErrorCode, message: str | None
) -> FindCoordinatorResponseCoordinator:
    return FindCoordinatorResponseCoordinator(
        key=key, node_id=-1, port=-1, error_code=code, error_message=message
    )


def _refuse(
    request: FindCoordinatorRequest, error: RequestError, version: int
) -> FindCoordinatorResponse:
    """Refuse every key, with a text."""
    code, message = error.code, error.message_or_default
    if version < FIRST_VERSION_WITH_MANY_KEYS:
        return FindCoordinatorResponse(error_code=code, error_message=message, node_id=-1, port=-1)
    return FindCoordinatorResponse(
        coordinators=[_no_coordinator(key, code, message) for key in request.coordinator_keys]
    )


API: Final = BrokerApi(
    key=ApiKey.FIND_COORDINATOR,
    request=FindCoordinatorRequest,
    permission=PER_RESOURCE,
    answer=answer,
    refuse=_refuse,
)
