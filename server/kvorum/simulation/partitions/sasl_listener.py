"""The listener of a simulated broker whose clients log in: its connections, and their checks.

What logs a client in, ends its session and asks what it may do is a node's.
"""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final, cast

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.standard_authorizer import ANONYMOUS
from kvorum.node.authorization import Authorizer
from kvorum.node.clock import Clock
from kvorum.node.coroutines import Wait
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.registry import broker_api_versions, broker_apis
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.raft import RaftNode
from kvorum.node.raft.raft_client import RaftClient
from kvorum.node.services import BrokerServices
from kvorum.node.serving.authentications import Authentications
from kvorum.node.serving.connection_rules import ConnectionRules
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.node.serving.listener_sasl import sasl_of_node
from kvorum.node.serving.request_handler import RequestHandler
from kvorum.node.serving.request_metrics import RequestChannelMetrics
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.sasl_authentication import SaslAuthentication
from kvorum.security.scram_messages import ClientFirst, ScramSyntaxError
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.simulation.network import OnReply, Serve
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.answer_check import Check
from kvorum.simulation.partitions.broker_coordination import PublishedImage
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.login_book import Login, LoginBook
from kvorum.simulation.partitions.login_settings import SASL_LISTENER
from kvorum.simulation.partitions.served_requests import Arrived, ServedRequests
from kvorum.simulation.properties.catalogue import Checks
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kvorum.wire.messages.sasl_handshake import SaslHandshakeRequest
from kvorum.wire.primitives import Message

CLIENT_HOST: Final = "127.0.0.1"
_SERVER_FINAL: Final = b"v="
"""The beginning of the token with which a server lets a client in by SCRAM."""
Work = Coroutine[Wait[Any], Any, ResponseFrame]


class AppliedMetadata(PublishedImage):
    """The metadata that a process has applied, up to an offset, and its replica of their log."""

    def __init__(
        self, image: Callable[[], MetadataImage], offset: Callable[[], int], replica: RaftClient
    ) -> None:
        super().__init__(image)
        self._offset = offset
        self.replica = replica

    @property
    def published_offset(self) -> int:
        """The offset of the last record that is applied."""
        return self._offset()


class SaslListener:
    """The listener with SASL of one process."""

    def __init__(
        self,
        services: BrokerServices,
        around: BrokerSurroundings,
        book: LoginBook,
        served: ServedRequests,
        applied: AppliedMetadata,
    ) -> None:
        config = services.config
        runtime = services.runtime
        loader = cast("MetadataLoader", applied)
        raft = cast("RaftNode", applied.replica)
        self._applied = applied
        self._runtime = runtime
        self._around = around
        self._book = book
        self._served = served
        self._authorizer = Authorizer(config.security.authorizer, loader=loader, raft=raft)
        handler = RequestHandler(
            broker_apis(),
            replace(services, loader=loader, raft=raft, served=broker_api_versions),
            self._authorizer.access,
            clock=runtime,
            metrics=RequestChannelMetrics(),
            throttle=services.throttling.throttle,
        )
        self._authentications = Authentications(runtime)
        sasl = sasl_of_node(
            config,
            lambda: applied.published,
            around.random,
            runtime,
            # Its mechanisms have nothing from elsewhere.
            note_renewable=lambda _: None,
        )
        self._sasl = sasl[SASL_LISTENER]
        self._rules = ConnectionRules(
            listener=SASL_LISTENER,
            protocol=SecurityProtocol.SASL_PLAINTEXT,
            frame_bytes_max=config.network.request_bytes_max,
            answer=handler.answer,
            refuse=handler.refuse,
            limits=cast("Any", None),
            runtime=runtime,
            sasl=self._sasl,
        )

    def connect(self, disconnect: DisconnectListeners) -> Serve:
        """Return what takes the frames of a new connection, one after the other's answer.

        Its requests end with it, when its end is reported to `disconnect`.
        As a node that is not unfenced yet, one that does not know all entries takes none.
        """
        if self._authorizer.access(ANONYMOUS, CLIENT_HOST).acls is None:
            return refuse_connection
        sasl = SaslAuthentication(
            self._rules, self._sasl, CLIENT_HOST, disconnect, self._authentications
        )
        watch = LoginWatch(self._book, self._around.checks, self._applied, self._runtime)
        return _Connection(sasl, watch, self._served, disconnect).handle


def refuse_connection(_: bytes, reply: OnReply) -> None:
    """Reply that no connection is taken."""
    reply(ConnectionLostError("no connection is taken"))


class _Connection:
    """One connection."""

    def __init__(
        self,
        sasl: SaslAuthentication,
        watch: "LoginWatch",
        served: ServedRequests,
        disconnect: DisconnectListeners,
    ) -> None:
        self._sasl = sasl
        self._watch = watch
        self._served = served
        self._disconnect = disconnect
        self._is_closed = False

    def handle(self, frame: bytes, reply: OnReply) -> None:
        """Answer the request in a frame, now or later; reply with the end of the connection."""
        if self._is_closed:
            reply(ConnectionLostError("the connection is closed"))
            return
        arrived = Arrived.of(frame)
        check = self._watch.on_request(arrived.request)
        try:
            work = self._sasl.answer(frame)
        except CloseConnectionError as error:
            self._is_closed = True
            reply(ConnectionLostError(str(error)))
            return
        work = self._until_closed(work)
        self._served.answer(arrived, work, reply, check, disconnect=self._disconnect)

    async def _until_closed(self, work: Work) -> ResponseFrame:
        """Return the response; take note of the end of the connection."""
        try:
            response = await work
        except CloseConnectionError:
            self._is_closed = True
            raise
        self._is_closed = response.is_last
        return response


class LoginWatch:
    """The checks of what one connection's client is answered: who it is, until when, what it may.

    A client is the user of its last login, by the book, and what it may do is what was committed up
    to the offset that the broker had applied when a request came.
    """

    def __init__(
        self, book: LoginBook, checks: Checks, applied: AppliedMetadata, clock: Clock
    ) -> None:
        self._book = book
        self._checks = checks
        self._applied = applied
        self._clock = clock
        self._tried: Login | None = None
        self._tried_at_offset = -1
        self._user: str | None = None
        self._end_ms = 0.0

    def on_request(self, request: Message) -> Check:
        """Take note of a request that has arrived; return the check of its answer."""
        match request:
            case SaslAuthenticateRequest():
                return self._on_token(request)
            case SaslHandshakeRequest():
                return _pass
            case ApiVersionsRequest() if self._user is None:
                return _pass
            case _:
                return self._in_session(request)

    def _on_token(self, request: SaslAuthenticateRequest) -> Check:
        try:
            first = ClientFirst.decode(request.auth_bytes)
        except ScramSyntaxError:
            pass
        else:
            self._tried = self._book.attempts[first.nonce]
            self._tried_at_offset = self._applied.published_offset

        def check(answer: Message) -> None:
            assert isinstance(answer, SaslAuthenticateResponse)
            is_let_in = answer.auth_bytes.startswith(_SERVER_FINAL)
            if answer.error_code == ErrorCode.NONE and is_let_in:
                self._let_in()

        return check

    def _let_in(self) -> None:
        """Check that the last login is right, and begin its session."""
        tried = self._tried
        assert tried is not None
        is_right = self._book.is_right(tried, self._tried_at_offset)
        is_same = self._user in {None, tried.user}
        self._checks.demand(
            promises.LOGINS_BY_PASSWORD,
            f"{tried} is let in at offset {self._tried_at_offset}, and was {self._user}",
            holds=is_right and is_same,
        )
        self._user = tried.user
        self._end_ms = self._clock.monotonic_ms() + self._book.settings.session_ms

    def _in_session(self, request: Message) -> Check:
        user = self._user
        now_ms = self._clock.monotonic_ms()
        is_in_session = user is not None and now_ms <= self._end_ms
        offset = self._applied.published_offset

        def check(answer: Message) -> None:
            self._checks.demand(
                promises.SESSIONS_END,
                f"{user}, until {self._end_ms}, is answered at {now_ms}: {request}",
                holds=is_in_session,
            )
            assert user is not None
            operation = _needed(request, answer)
            if operation is None:
                return
            self._checks.demand(
                promises.PERMITTED,
                f"{user} by the metadata up to {offset}: {request} is answered {answer}",
                holds=self._book.may(user, operation, offset),
            )

        return check


def _needed(request: Message, answer: Message) -> AclOperation | None:
    """Return the operation that an answer is a success of, None for no success."""
    match request, answer:
        case (ProduceRequest(), ProduceResponse()):
            written = (one for topic in answer.responses for one in topic.partition_responses)
            is_done = any(one.error_code == ErrorCode.NONE for one in written)
            return AclOperation.WRITE if is_done else None
        case (FetchRequest(), FetchResponse()):
            read = (one for topic in answer.responses for one in topic.partitions)
            is_done = any(one.error_code == ErrorCode.NONE for one in read)
            return AclOperation.READ if is_done else None
        case _:
            return None


def _pass(_: Message) -> None:
    """Take any answer."""
