"""BrokerHeartbeat (63): a broker says how it is and what it wants, and is told what it is."""

from __future__ import annotations

from enum import Enum, unique

from kvorum.controller.broker_changes import (
    cordon_directories,
    fencing,
    losing_directories,
    shutting_down,
    unfencing,
)
from kvorum.controller.broker_epochs import registration_of_epoch
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.leaderships import leads_any
from kvorum.controller.result import ControllerResult, Pieces, Steps, at_once, gather
from kvorum.controller.sessions import NOTHING_READ, BrokerSession
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.cluster_image import BrokerRegistration
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord


@unique
class BrokerState(Enum):
    """What the controller takes a broker to be."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        """Whether a broker in this state is out of service."""
        return self in (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)


def broker_heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: ControllerContext
) -> ControllerResult[BrokerHeartbeatResponse]:
    """Move the broker to the state its heartbeat asks for, where it may go there."""
    return at_once(heartbeat_in_pieces(image, request, context))


def heartbeat_in_pieces(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: ControllerContext
) -> Pieces[ControllerResult[BrokerHeartbeatResponse]]:
    """Do so in pieces: what follows may be as many records as the broker has partitions.

    The contact itself is noted by whoever receives the request, before it waits for its turn.
    """
    broker = registration_of_epoch(image.cluster, request.broker_id, request.broker_epoch)
    rules = ClusterRules(image, context.settings)
    session = context.sessions.session(broker.id)
    current = current_state(broker, session)
    following = next_state(image, request, context)
    records: list[RecordAndVersion] = []
    if following is not current:
        yield from gather(records, _transition(rules, broker, following))
    if image.metadata_version.supports_directory_assignment:
        offline = losing_directories(rules, broker, request.offline_log_dirs)
        yield from gather(records, offline)
    if image.metadata_version.supports_cordoned_log_dirs:
        records.extend(cordon_directories(broker, request.cordoned_log_dirs))
    is_registration_changed = any(
        isinstance(record, BrokerRegistrationChangeRecord) for record, _ in records
    )
    context.sessions.touch(
        broker.id,
        is_fenced=following.is_fenced,
        # As in Kafka, a broker with a new registration counts as having read nothing until its
        # next heartbeat: who is shutting down waits for it that long.
        metadata_offset=NOTHING_READ
        if is_registration_changed
        else request.current_metadata_offset,
    )
    if following is BrokerState.CONTROLLED_SHUTDOWN:
        # The broker may stop once all others have read that its leaderships moved.
        context.sessions.begin_controlled_shutdown(
            broker.id, context.next_offset + len(records) - 1
        )
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.registered_at_offset,
        is_fenced=following.is_fenced,
        should_shut_down=following is BrokerState.SHUTDOWN_NOW,
    )
    return ControllerResult(response, tuple(records), is_atomic=False)


def current_state(broker: BrokerRegistration, session: BrokerSession) -> BrokerState:
    """Return the state a broker is in."""
    if session.is_shutting_down:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.is_fenced else BrokerState.UNFENCED


def next_state(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: ControllerContext
) -> BrokerState:
    """Return the state the broker is in from this heartbeat on."""
    broker = image.cluster.brokers[request.broker_id]
    session = context.sessions.session(broker.id)
    match current_state(broker, session):
        case BrokerState.FENCED:
            return _after_fenced(broker, request)
        case BrokerState.UNFENCED:
            return _after_unfenced(image, request)
        case _:
            return _after_controlled_shutdown(image, session, context, broker.id)


def _after_fenced(broker: BrokerRegistration, request: BrokerHeartbeatRequest) -> BrokerState:
    if request.want_shut_down:
        return BrokerState.SHUTDOWN_NOW
    if request.want_fence or request.current_metadata_offset < broker.registered_at_offset:
        return BrokerState.FENCED
    return BrokerState.UNFENCED


def _after_unfenced(image: MetadataImage, request: BrokerHeartbeatRequest) -> BrokerState:
    if request.want_fence:
        return BrokerState.SHUTDOWN_NOW if request.want_shut_down else BrokerState.FENCED
    if not request.want_shut_down:
        return BrokerState.UNFENCED
    if leads_any(image, request.broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def _after_controlled_shutdown(
    image: MetadataImage, session: BrokerSession, context: ControllerContext, broker_id: int
) -> BrokerState:
    if leads_any(image, broker_id):
        return BrokerState.CONTROLLED_SHUTDOWN
    slowest = context.sessions.lowest_active_offset(image.cluster)
    if session.controlled_shutdown_offset <= slowest:
        return BrokerState.SHUTDOWN_NOW
    return BrokerState.CONTROLLED_SHUTDOWN


def _transition(rules: ClusterRules, broker: BrokerRegistration, following: BrokerState) -> Steps:
    match following:
        case BrokerState.UNFENCED:
            return unfencing(rules, broker)
        case BrokerState.CONTROLLED_SHUTDOWN:
            return shutting_down(rules, broker)
        case _:
            return fencing(rules, broker)
