"""The client of a request, as decisions on delegation tokens and the views of a node need it."""

from kvorum.broker.view_api import BrokerView
from kvorum.controller.api import Requester
from kvorum.metadata.standard_authorizer import ANONYMOUS
from kvorum.node.services import BrokerServices, ControllerServices
from kvorum.node.serving.repeated_answers import Basis
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.wire.primitives import Message


def requester_of(request: IncomingRequest[Message]) -> Requester:
    """Return the client of `request`."""
    return Requester(
        principal=request.principal,
        access=request.access,
        api_version=request.version,
        may_ask_about_tokens=may_ask_about_tokens(request.session),
    )


def may_ask_about_tokens(session: Session) -> bool:
    """Return whether the client has authenticated in a way that permits requests about tokens.

    A controller trusts a broker to forward only clients that have.
    """
    if session.principal.is_token_authenticated:
        return False
    if session.is_forwarded:
        return True
    if session.protocol is SecurityProtocol.SSL:
        return not session.principal.is_same_user(ANONYMOUS)
    return session.protocol is not SecurityProtocol.PLAINTEXT


def view_of(request: IncomingRequest[Message], broker: BrokerServices) -> BrokerView:
    """Return the view of the broker that answers `request` on its listener."""
    config = broker.config
    return BrokerView(
        node_id=config.node_id,
        cluster_id=broker.cluster_id,
        listener=request.listener,
        quorum_leader_id=broker.raft.leader_id,
        api_version=request.version,
        texts=config.texts,
        is_auto_create_enabled=config.topics.is_auto_create_enabled,
        request_partitions_max=config.network.request_partitions_max,
        access=request.access,
        token_settings=config.security.tokens,
        may_ask_about_tokens=may_ask_about_tokens(request.session),
        serves_metadata_topic=broker.metadata_topic is not None,
        check_stores=broker.check_stores,
    )


def basis_of_view(broker: BrokerServices) -> Basis:
    """Return what changes in the views of a broker; its settings do not."""
    return broker.loader.published, broker.raft.leader_id


def view_of_controller(
    request: IncomingRequest[Message], controller: ControllerServices
) -> BrokerView:
    """Return the view of a controller, which answers some requests as a broker does."""
    return BrokerView(
        node_id=controller.config.node_id,
        cluster_id=controller.cluster_id,
        listener=request.listener,
        api_version=request.version,
        texts=controller.config.texts,
        access=request.access,
        token_settings=controller.config.security.tokens,
        may_ask_about_tokens=may_ask_about_tokens(request.session),
    )
