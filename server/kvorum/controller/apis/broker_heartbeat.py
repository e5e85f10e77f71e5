"""BrokerHeartbeat (63): a broker reports its state and asks for another; it gets the new state."""

from enum import Enum, unique
from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult, Pieces, Steps, gather
from kvorum.controller.broker_changes import (
    cordon_directories,
    handle_broker_fenced,
    handle_broker_unfenced,
    handle_directories_offline,
    leads_any,
    shutting_down,
)
from kvorum.controller.broker_epochs import registration_of_epoch
from kvorum.controller.broker_heartbeat_manager import NOTHING_READ, BrokerHeartbeatState
from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import refused_by_code
from kvorum.metadata.cluster_image import BrokerRegistration
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord


@unique
class BrokerControlState(Enum):
    """The state of a broker in the eyes of the controller: Kafka's BrokerControlState."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        """Whether a broker in this state does not serve clients."""
        return self in (BrokerControlState.FENCED, BrokerControlState.SHUTDOWN_NOW)


def broker_heartbeat(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: ControllerRequestContext
) -> Pieces[ControllerResult[BrokerHeartbeatResponse]]:
    """Move the broker to the state that its heartbeat asks for, if that is allowed.

    This is done in pieces: each of its partitions may be a record.
    The receiver of the request records the contact before the request waits for its turn.
    """
    broker = registration_of_epoch(image.cluster, request.broker_id, request.broker_epoch)
    rules = ClusterRules(image, context.settings)
    current = current_state(broker, context.sessions.session(broker.id))
    following = next_state(image, request, context)
    records: list[RecordAndVersion] = []
    if following is not current:
        yield from gather(records, _transition(rules, broker, following))
    if image.metadata_version.supports_directory_assignment:
        offline = handle_directories_offline(rules, broker, request.offline_log_dirs)
        yield from gather(records, offline)
    if image.metadata_version.supports_cordoned_log_dirs:
        records.extend(cordon_directories(broker, request.cordoned_log_dirs))
    is_registration_changed = any(
        isinstance(record, BrokerRegistrationChangeRecord) for record, _ in records
    )
    context.sessions.touch(
        broker.id,
        is_fenced=following.is_fenced,
        # As in Kafka, the metadata offset of a newly registered broker is unknown until its
        # next heartbeat: a broker that is shutting down waits until then.
        metadata_offset=NOTHING_READ
        if is_registration_changed
        else request.current_metadata_offset,
    )
    if following is BrokerControlState.CONTROLLED_SHUTDOWN:
        # The broker may stop once all others have read the records that moved its leaderships.
        context.sessions.begin_controlled_shutdown(
            broker.id, context.next_offset + len(records) - 1
        )
    response = BrokerHeartbeatResponse(
        is_caught_up=request.current_metadata_offset >= broker.registered_at_offset,
        is_fenced=following.is_fenced,
        should_shut_down=following is BrokerControlState.SHUTDOWN_NOW,
    )
    return ControllerResult(response, tuple(records), is_atomic=False)


def current_state(broker: BrokerRegistration, session: BrokerHeartbeatState) -> BrokerControlState:
    """Return the current state of a broker."""
    if session.is_shutting_down:
        return BrokerControlState.CONTROLLED_SHUTDOWN
    return BrokerControlState.FENCED if broker.is_fenced else BrokerControlState.UNFENCED


def next_state(
    image: MetadataImage, request: BrokerHeartbeatRequest, context: ControllerRequestContext
) -> BrokerControlState:
    """Return the state of the broker after this heartbeat."""
    broker = image.cluster.brokers[request.broker_id]
    session = context.sessions.session(broker.id)
    match current_state(broker, session):
        case BrokerControlState.FENCED:
            return _after_fenced(broker, request)
        case BrokerControlState.UNFENCED:
            return _after_unfenced(image, request)
        case _:
            return _after_controlled_shutdown(image, session, context, broker.id)


def _after_fenced(
    broker: BrokerRegistration, request: BrokerHeartbeatRequest
) -> BrokerControlState:
    if request.want_shut_down:
        return BrokerControlState.SHUTDOWN_NOW
    if request.want_fence or request.current_metadata_offset < broker.registered_at_offset:
        return BrokerControlState.FENCED
    return BrokerControlState.UNFENCED


def _after_unfenced(image: MetadataImage, request: BrokerHeartbeatRequest) -> BrokerControlState:
    if request.want_fence:
        return (
            BrokerControlState.SHUTDOWN_NOW if request.want_shut_down else BrokerControlState.FENCED
        )
    if not request.want_shut_down:
        return BrokerControlState.UNFENCED
    if leads_any(image, request.broker_id):
        return BrokerControlState.CONTROLLED_SHUTDOWN
    return BrokerControlState.SHUTDOWN_NOW


def _after_controlled_shutdown(
    image: MetadataImage,
    session: BrokerHeartbeatState,
    context: ControllerRequestContext,
    broker_id: int,
) -> BrokerControlState:
    if leads_any(image, broker_id):
        return BrokerControlState.CONTROLLED_SHUTDOWN
    if session.controlled_shutdown_offset <= context.sessions.lowest_active_offset(image.cluster):
        return BrokerControlState.SHUTDOWN_NOW
    return BrokerControlState.CONTROLLED_SHUTDOWN


def _transition(
    rules: ClusterRules, broker: BrokerRegistration, following: BrokerControlState
) -> Steps:
    match following:
        case BrokerControlState.UNFENCED:
            return handle_broker_unfenced(rules, broker)
        case BrokerControlState.CONTROLLED_SHUTDOWN:
            return shutting_down(rules, broker)
        case _:
            return handle_broker_fenced(rules, broker)


API: Final = ControllerApi(
    request=BrokerHeartbeatRequest,
    permission=AclOperation.CLUSTER_ACTION,
    decide=broker_heartbeat,
    refuse=refused_by_code(BrokerHeartbeatResponse),
)
