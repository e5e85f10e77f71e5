"""A client of a quorum's leader: it finds the leader, and finds the next one when that changes.

Only the leader answers Fetch and FetchSnapshot. Every controller that is asked names the leader
and, since Kafka 3.9, its endpoint in the answer. So a request goes

1. to the leader that was named last, as long as a connection to it can be had;
2. else to each known address in turn: those of the options, and those learnt from answers;
3. again after a pause, until a leader has answered or the time limit is over.

A request has the leader epoch that is known: a controller of an older epoch, which may not know
that it leads no more, refuses it.
"""

import logging
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from kvorum.metadata.address import Address
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.quorum_client.connection import Connection, ConnectionFailedError
from kvorum.quorum_client.errors import QuorumError
from kvorum.security.client_security import ClientSecurity
from kvorum.security.client_settings import ClientSecuritySettings
from kvorum.security.errors import InvalidSslSettingsError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

REQUEST_TIMEOUT_S: Final = 5.0
"""The time that a controller may take to answer: ten times as long as it may wait for records."""
PAUSE_S: Final = 0.1
CONTROLLERS: Final = 2
"""The endpoint type of controllers in DescribeCluster."""
_LOG: Final = logging.getLogger(__name__)
Answer = TypeVar("Answer")


class UnusableAnswerError(Exception):
    """An answer that is no use; the request is sent again, to the leader that is known by then."""


class LeaderHint(NamedTuple):
    """The leader in an answer; `leader_id` is -1 where it is not known."""

    leader_id: int
    leader_epoch: int
    endpoint: Address | None


class QuorumPlan(NamedTuple):
    """The knowledge of a quorum that one client hands to another, in another process."""

    addresses: tuple[Address, ...]
    leader: Address | None
    leader_epoch: int
    retry_timeout_s: float
    cluster_id: str | None
    security: ClientSecuritySettings = ClientSecuritySettings()


class QuorumClient:
    """A client that keeps one connection, to the leader; use one in one thread.

    `leader` is its address, None where it is not known. `clock` and `pause` are those of `time`, in
    seconds.
    """

    def __init__(
        self,
        plan: QuorumPlan,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cluster_id = plan.cluster_id
        self.leader_epoch = plan.leader_epoch
        self._addresses = list(plan.addresses)
        self.leader = plan.leader
        self._security = plan.security
        self._made_security: ClientSecurity | None = None
        self._retry_timeout_s = plan.retry_timeout_s
        self._connection: Connection | None = None
        self._turn = 0
        self._clock = clock
        self._pause = pause

    @property
    def plan(self) -> QuorumPlan:
        """The knowledge of this client."""
        return QuorumPlan(
            tuple(self._addresses),
            self.leader,
            self.leader_epoch,
            self._retry_timeout_s,
            self.cluster_id,
            self._security,
        )

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def ask_leader(
        self, ask: Callable[[Connection, int], Answer], *, lowest_epoch: int = 0
    ) -> Answer:
        """Return what `ask` returns, given a connection to the leader and its epoch.

        The epoch is `lowest_epoch` at least. `ask` raises `UnusableAnswerError` for an answer
        that is no use, and `ConnectionFailedError`; it is called again then. Raises `QuorumError`
        where no leader gave an answer of use within the time limit.
        """
        # Answers of a controller that lags about an earlier leader are then passed over.
        self.leader_epoch = max(self.leader_epoch, lowest_epoch)
        deadline = self._clock() + self._retry_timeout_s
        failures = 0
        while True:
            address = self._next_address()
            try:
                connection = self._connected(address)
                answer = ask(connection, self.leader_epoch)
            except (ConnectionFailedError, UnusableAnswerError) as error:
                _LOG.info("%s: %s", address, error)
                self._drop(address)
                failures += 1
                if self._clock() >= deadline:
                    raise self._gave_up(address, error) from None
                if failures % len(self._addresses) == 0:
                    self._pause(PAUSE_S)
            else:
                self.leader = connection.address
                return answer

    def note(self, hint: LeaderHint) -> None:
        """Take what an answer says of the leader; what is of an older epoch is passed over."""
        if hint.leader_epoch < self.leader_epoch:
            return
        if hint.leader_epoch > self.leader_epoch:
            self.leader_epoch = hint.leader_epoch
            self.leader = None
        if hint.leader_id >= 0 and hint.endpoint is not None:
            self.leader = hint.endpoint
            self.learn([hint.endpoint])

    def learn(self, addresses: Iterable[Address]) -> None:
        """Remember addresses of controllers."""
        self._addresses = list(dict.fromkeys([*self._addresses, *addresses]))

    def find_cluster_id(self) -> str:
        """Return the id of the cluster; any controller has it.

        Raises `QuorumError` where none tells it within the time limit.
        """

        def ask(connection: Connection, _: int) -> str:
            request = DescribeClusterRequest(endpoint_type=CONTROLLERS)
            answer = connection.ask(request, DescribeClusterResponse, lowest_version=1)
            if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise QuorumError(
                    "DescribeCluster: CLUSTER_AUTHORIZATION_FAILED: give option 'cluster.id', or "
                    "have the controllers' authorizer allow Alter on the cluster to this client"
                )
            if answer.error_code != ErrorCode.NONE or not answer.cluster_id:
                raise UnusableAnswerError(error_text("DescribeCluster", answer.error_code))
            return answer.cluster_id

        return self.ask_leader(ask)

    def learn_voters(self) -> None:
        """Learn the voters' addresses from the leader; older controllers do not give them."""
        connection = self._connection
        if connection is None:
            return
        partition = DescribeQuorumRequest.PartitionData()
        topic = DescribeQuorumRequest.TopicData(CLUSTER_METADATA_TOPIC, [partition])
        try:
            answer = connection.ask(DescribeQuorumRequest([topic]), DescribeQuorumResponse)
        except ConnectionFailedError as error:
            _LOG.info("%s: %s", connection.address, error)
            self.close()
            return
        if answer.error_code != ErrorCode.NONE:
            _LOG.info("%s: %s", connection.address, error_text("DescribeQuorum", answer.error_code))
        # The first listener is the one that the controllers themselves use.
        listeners = [node.listeners[0] for node in answer.nodes if node.listeners]
        self.learn(Address(listener.host, listener.port) for listener in listeners)

    def _next_address(self) -> Address:
        if self.leader is not None:
            return self.leader
        address = self._addresses[self._turn % len(self._addresses)]
        self._turn += 1
        return address

    def _connected(self, address: Address) -> Connection:
        if self._connection is not None and self._connection.address != address:
            self.close()
        if self._connection is None:
            if self._made_security is None:
                self._made_security = _made(self._security)
            self._connection = Connection(
                address, timeout_s=REQUEST_TIMEOUT_S, security=self._made_security
            )
        return self._connection

    def _drop(self, failed: Address) -> None:
        """Forget the connection, and the leader unless another one was named meanwhile."""
        self.close()
        if self.leader == failed:
            self.leader = None

    def _gave_up(self, address: Address, error: Exception) -> QuorumError:
        asked = ", ".join(str(each) for each in self._addresses)
        return QuorumError(
            f"no leader of the quorum gave an answer of use within {self._retry_timeout_s:g} s "
            f"(asked were {asked}; last {address}: {error}): check that option 'controllers' names "
            "controllers that there are today, or raise option 'retryTimeoutMs'"
        )


def _made(settings: ClientSecuritySettings) -> ClientSecurity:
    try:
        return settings.make()
    except ImportError:
        raise QuorumError(
            "TLS needs the package cryptography: install kvorum with its extra 'security'"
        ) from None
    except InvalidSslSettingsError as error:
        raise QuorumError(f"TLS: {error}") from error


def error_text(request: str, code: int) -> str:
    """Return an error of an answer in words."""
    try:
        return f"{request}: {ErrorCode(code).name}"
    except ValueError:
        return f"{request}: error {code}"
