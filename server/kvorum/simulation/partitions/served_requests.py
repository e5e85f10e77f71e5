"""The requests that a simulated broker serves, answered by the handlers of a node.

A request arrives as a frame and leaves as one. What is between is what ships: the request handler,
the handlers of its APIs, purgatories, the coordinator and the partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, NamedTuple, cast

from kvorum.broker.fetch_session.context import FetchManager
from kvorum.broker.quota.client_quota_manager import QuotaManagers
from kvorum.broker.quota.rate import MetricConfig
from kvorum.broker.quota.replication_quota_manager import ReplicationQuotaManagers
from kvorum.metadata.standard_authorizer import ANONYMOUS, UNRESTRICTED
from kvorum.metadata.topic_names import GROUP_METADATA_TOPIC
from kvorum.node.broker.batch_inspector import BatchInspector
from kvorum.node.broker.broker_metadata_publisher import BrokerMetadataPublisher
from kvorum.node.broker.coordinator.coordinator_on_demand import CoordinatorOnDemand
from kvorum.node.broker.group_coordinator.group_coordinator_service import GroupCoordinatorService
from kvorum.node.broker.purgatories import Purgatories
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.broker.request_handler_helper import RequestHandlerHelper
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.broker.transaction_verification import VerifiedPartitions
from kvorum.node.config import NodeConfig
from kvorum.node.coroutines import Task, Wait
from kvorum.node.errors import CloseConnectionError
from kvorum.node.handlers.registry import broker_apis
from kvorum.node.outbound.client_connection import ConnectionLostError
from kvorum.node.services import BrokerServices
from kvorum.node.serving.disconnect_listeners import DisconnectListeners
from kvorum.node.serving.frame_writer import FramePart
from kvorum.node.serving.request import IncomingRequest
from kvorum.node.serving.request_handler import HandlerResponse, RequestHandler
from kvorum.node.serving.request_metrics import RequestChannelMetrics, count_errors
from kvorum.node.serving.response_frame import ResponseFrame
from kvorum.node.serving.session import Session
from kvorum.security.security_protocol import SecurityProtocol
from kvorum.simulation.network import OnReply
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.answer_check import Check
from kvorum.simulation.partitions.broker_coordination import BrokerCoordination, PublishedImage
from kvorum.simulation.partitions.broker_surroundings import BrokerSurroundings
from kvorum.simulation.partitions.login_settings import SASL_LISTENER, LoginSettings
from kvorum.simulation.partitions.request_watch import RequestWatch
from kvorum.simulation.partitions.settings import CLUSTER_ID, ROOTS, ClusterSettings
from kvorum.simulation.properties.catalogue import PropertyViolatedError
from kvorum.simulation.requests import decoded_answer
from kvorum.storage.log.file_records import FileRecords, TruncatedRecordsError
from kvorum.wire.apis import request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.headers import decode_request_frame
from kvorum.wire.primitives import Message

LISTENER: Final = "PLAIN"
MARKER_TIMEOUT_MS: Final = 200
QUOTA_CONFIG: Final = MetricConfig(11, 1_000)
_CLIENT: Final = Session(LISTENER, SecurityProtocol.PLAINTEXT, "127.0.0.1", ANONYMOUS)
_FULL_SOCKET: Final = 0.1
"""The share of responses that wait for their client: its socket takes nothing more."""
_FULL_SOCKET_MS_MAX: Final = 60.0


class _NoTopicCreator:
    """The creation of topics, which are all created in the beginning."""

    async def create_internal(self, topic: str) -> None:
        """Do nothing: a broker that does not know of the topic yet will hear of it."""


class _OwnCoordinators:
    """Transactions whose producers are their own coordinators, so that none is verified."""

    async def verify(self, *_: object) -> VerifiedPartitions:
        """Return that nothing is to be verified."""
        return VerifiedPartitions(must_be_verified=False)

    verify_with_retries = verify


class _NotInThisWorld:
    """A part of a broker that no request of this world needs."""

    def __getattr__(self, name: str) -> object:
        raise LookupError(f"no request of this world needs {name}")


_ABSENT: Final = cast("Any", _NotInThisWorld())


def broker_config(
    broker_id: int, settings: ClusterSettings, logins: LoginSettings | None
) -> NodeConfig:
    """Return the configuration of a simulated broker, as far as a part of it asks for that."""
    transactions = settings.transactions
    return NodeConfig.from_properties(
        {
            "process.roles": "broker",
            "node.id": str(broker_id),
            "controller.quorum.bootstrap.servers": "c1:9093",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": (
                f"CONTROLLER:PLAINTEXT,{LISTENER}:PLAINTEXT,{SASL_LISTENER}:SASL_PLAINTEXT"
            ),
            "inter.broker.listener.name": LISTENER,
            "listeners": f"{LISTENER}://b{broker_id}:9092",
            "log.dirs": ",".join(map(str, ROOTS)),
            "request.timeout.ms": str(MARKER_TIMEOUT_MS),
            **({} if transactions is None else transactions.of_broker),
            **({} if logins is None else logins.of_broker(broker_id, LISTENER)),
        }
    )


def broker_services(
    config: NodeConfig,
    around: BrokerSurroundings,
    broker: ThisBroker,
    *,
    replicas: ReplicaManager,
    publisher: BrokerMetadataPublisher,
    replication_quotas: ReplicationQuotaManagers,
    groups: GroupCoordinatorService,
    coordination: BrokerCoordination | None,
) -> BrokerServices:
    """Return the parts of a simulated broker that the handlers of a node use.

    Without `coordination` producers are the coordinators of their transactions.
    """
    runtime = broker.runtime
    return BrokerServices(
        config=config,
        cluster_id=CLUSTER_ID,
        raft=_ABSENT,
        loader=cast("Any", PublishedImage(broker.image)),
        forwarder=_ABSENT,
        topic_creator=cast("Any", _NoTopicCreator()),
        metadata_topic=None,
        replicas=replicas,
        publisher=publisher,
        replication_quotas=replication_quotas,
        inspector=BatchInspector(runtime),
        producer_ids=coordination.producer_ids if coordination is not None else _ABSENT,
        fetch_sessions=FetchManager(config.network.fetch_session_slots, around.random),
        replica_selector=None,
        coordinated_groups=CoordinatorOnDemand(GROUP_METADATA_TOPIC, publisher, lambda: groups),
        coordinated_transactions=coordination.on_demand if coordination is not None else _ABSENT,
        coordinated_shares=_ABSENT,
        fetched_shares=_ABSENT,
        coordinated_share_groups=_ABSENT,
        transactions=coordination.verification
        if coordination is not None
        else cast("Any", _OwnCoordinators()),
        throttling=RequestHandlerHelper(QuotaManagers(QUOTA_CONFIG), runtime),
        purgatories=Purgatories(runtime),
        runtime=runtime,
        random=around.random,
        served=_ABSENT,
        check_stores=_ABSENT,
    )


class Arrived(NamedTuple):
    """A request that has arrived in a frame, and its version."""

    request: Message
    version: int

    @classmethod
    def of(cls, frame: bytes) -> Arrived:
        """Read the request in a frame."""
        header, body = decode_request_frame(frame)
        version = header.request_api_version
        return cls(request_class(header.request_api_key).decode(bytes(body), version), version)


class ServedRequests:
    """The requests of one process; `guard` makes a callback one of the process.

    A response is decided on at once; its records are read from their file when the socket takes
    them, which may be later. The connection breaks where the log was truncated meanwhile.
    """

    def __init__(
        self,
        services: BrokerServices,
        around: BrokerSurroundings,
        guard: Callable[[Callable[[], None]], Callable[[], None]],
        watch: RequestWatch,
    ) -> None:
        self._around = around
        self._guard = guard
        self._watch = watch
        self._handler = RequestHandler(
            broker_apis(),
            services,
            lambda _principal, _host, _request: UNRESTRICTED,
            clock=services.runtime,
            metrics=RequestChannelMetrics(),
            throttle=services.throttling.throttle,
        )

    def handle(self, frame: bytes, reply: OnReply, disconnect: DisconnectListeners | None) -> None:
        """Answer the request in a frame, now or later; see `Server.receive` and `answer`."""
        arrived = Arrived.of(frame)
        work = self._handler.answer(frame, _CLIENT._replace(disconnect=disconnect))
        self.answer(arrived, work, reply, disconnect=disconnect)

    def answer(
        self,
        arrived: Arrived,
        work: Coroutine[Wait[Any], Any, ResponseFrame],
        reply: OnReply,
        *checks: Check,
        disconnect: DisconnectListeners | None,
    ) -> None:
        """Reply to a request with what `work` leads to, once all `checks` have looked at it.

        The request ends with its connection, if that reports its end to `disconnect`.
        """
        request, version = arrived
        try:
            checks = (self._watch.on_request(request, version, disconnect), *checks)
        except PropertyViolatedError:
            work.close()
            raise

        def answered(response: ResponseFrame | Exception) -> None:
            if isinstance(response, Exception):
                if not isinstance(response, CloseConnectionError):
                    raise response
                reply(ConnectionLostError(str(response)))
                return
            if response.parts is not None:
                whole = b"".join(map(_without_records, response.parts))
                answer = decoded_answer(request, version, whole)
                _demand_known(request, answer)
                for check in checks:
                    check(answer)
                self._send(response, reply)

        task = Task(work, answered)
        if disconnect is not None:
            disconnect.add(lambda _: task.close())

    async def answer_own(self, request: IncomingRequest[Message]) -> HandlerResponse:
        """Return the answer to a request of this broker itself."""
        self._watch.on_own_request(request.body)
        answered = await self._handler.handle(request)
        assert isinstance(answered, Message)
        _demand_known(request.body, answered)
        return answered

    def _send(self, response: ResponseFrame, reply: OnReply) -> None:
        send = partial(_reply_with, response, reply)
        random = self._around.random
        if random.random() >= _FULL_SOCKET:
            send()
        else:
            delay_ms = random.uniform(0, _FULL_SOCKET_MS_MAX)
            self._around.events.after(delay_ms, self._guard(send))


def _reply_with(response: ResponseFrame, reply: OnReply) -> None:
    """Reply with a response and the records in their files; break the connection without these."""
    try:
        frame = b"".join(map(bytes, response.parts or ()))
    except (OSError, TruncatedRecordsError) as error:
        reply(ConnectionLostError(str(error)))
        return
    if response.on_sent is not None:
        response.on_sent()
    reply(frame)


def _demand_known(request: Message, answer: Message) -> None:
    """Check that no handler has failed; raises PropertyViolatedError."""
    if ErrorCode.UNKNOWN_SERVER_ERROR in count_errors(answer):
        raise PropertyViolatedError(promises.ANSWERS_KNOWN, f"{request} is answered: {answer}")


def _without_records(part: FramePart) -> bytes | memoryview:
    """Return a part of a frame as it is, but records in a file as so many zeros."""
    return bytes(len(part)) if isinstance(part, FileRecords) else part
