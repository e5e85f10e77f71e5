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
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeVar

from kvorum.log_files.damage import Damage, DamageKind
from kvorum.log_files.entry_reader import BatchOrDamage
from kvorum.metadata.address import Address
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.spark.errors import QuorumError
from kvorum.spark.streaming.connection import Connection, ConnectionFailedError
from kvorum.spark.streaming.security import PLAINTEXT, Security
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.offset_and_epoch import OffsetAndEpoch
from kvorum.wire.records import RecordBatch, read_batches
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

REQUEST_TIMEOUT_S: Final = 5.0
"""The time that a controller may take to answer: ten times as long as it may wait for records."""
PAUSE_S: Final = 0.1
CONTROLLERS: Final = 2
"""The endpoint type of controllers in DescribeCluster."""
_LOG: Final = logging.getLogger(__name__)
Answer = TypeVar("Answer")

FETCH_VERSION_MIN: Final = 13
"""The first version that names topics by id, which leaders of a quorum demand."""
FETCH_BYTES: Final = 4 * 1024 * 1024
"""The bytes of records that one fetch asks for."""
PEEK_BYTES: Final = 1
"""So few bytes that an answer has a single batch."""
LONG_POLL_MS: Final = 500
"""The time for which a leader may wait for records, as for a follower."""
Result = TypeVar("Result")


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
    security: Security = PLAINTEXT


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
            self._connection = Connection(
                address, timeout_s=REQUEST_TIMEOUT_S, security=self._security
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


def error_text(request: str, code: int) -> str:
    """Return an error of an answer in words."""
    try:
        return f"{request}: {ErrorCode(code).name}"
    except ValueError:
        return f"{request}: error {code}"


class Fetched(NamedTuple):
    """A leader's answer: batches that are committed, from the one with the asked offset on.

    `snapshot` is the id of a snapshot to read instead, where the log does not have the asked
    offset any more; there are no batches then.
    """

    high_watermark: int
    log_start_offset: int
    snapshot: OffsetAndEpoch | None
    batches: tuple[RecordBatch, ...]


def fetch(
    client: QuorumClient,
    place: OffsetAndEpoch,
    *,
    size_bytes: int = FETCH_BYTES,
    wait_ms: int = 0,
    reach: int = 0,
) -> Fetched:
    """Return committed batches from `place` on, as many as fit into about `size_bytes`.

    `place.epoch` is the epoch of the record before, or a later one of the same log. An answer
    with a high watermark below `reach` is of a leader that does not know yet what is committed,
    and not used. Raises `QuorumError`.

    A leader hands out records that are not committed yet too. Here only batches that lie below the
    high watermark of the same answer are returned: these never change, also under later leaders.
    """
    ask = partial(_ask, client, place=place, size_bytes=size_bytes, wait_ms=wait_ms, reach=reach)
    return client.ask_leader(ask, lowest_epoch=place.epoch)


def latest_snapshot(
    client: QuorumClient, connection: Connection, leader_epoch: int
) -> OffsetAndEpoch | None:
    """Return the snapshot that the leader hands to a follower that begins, None for none.

    Raises `UnusableAnswerError` and `ConnectionFailedError`; what the answer says of the leader
    is noted.
    """
    beginning = OffsetAndEpoch(0, 0)
    fetched = _ask(client, connection, leader_epoch, place=beginning, size_bytes=PEEK_BYTES)
    return fetched.snapshot


def check_error(client: QuorumClient, request: str, code: int) -> None:
    """Raise for an answer with an error: `QuorumError` for one that no other leader mends."""
    if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
        raise QuorumError(
            f"the controllers are of another cluster than {client.cluster_id}, which the checkpoint"
            " or option 'cluster.id' names: check option 'controllers'"
        )
    if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise QuorumError(
            f"{request}: CLUSTER_AUTHORIZATION_FAILED: the controllers' authorizer must allow "
            "ClusterAction on the cluster to this client"
        )
    if code != ErrorCode.NONE:
        raise UnusableAnswerError(error_text(request, code))


def _ask(
    client: QuorumClient,
    connection: Connection,
    leader_epoch: int,
    *,
    place: OffsetAndEpoch,
    size_bytes: int,
    wait_ms: int = 0,
    reach: int = 0,
) -> Fetched:
    partition = FetchRequest.FetchPartition(
        partition=CLUSTER_METADATA_PARTITION,
        current_leader_epoch=leader_epoch,
        fetch_offset=place.offset,
        last_fetched_epoch=place.epoch,
        partition_max_bytes=size_bytes,
        # A leader whose high watermark is higher answers at once.
        high_watermark=place.offset,
    )
    topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])
    # The replica id stays -1: the leader then does not take this client for one of its replicas.
    request = FetchRequest(
        cluster_id=client.cluster_id, max_wait_ms=wait_ms, max_bytes=size_bytes, topics=[topic]
    )
    answer = connection.ask(request, FetchResponse, lowest_version=FETCH_VERSION_MIN)
    endpoints = {node.node_id: Address(node.host, node.port) for node in answer.node_endpoints}
    check_error(client, "Fetch", answer.error_code)
    data = only([partition for topic in answer.responses for partition in topic.partitions])
    leader = data.current_leader
    client.note(LeaderHint(leader.leader_id, leader.leader_epoch, endpoints.get(leader.leader_id)))
    check_error(client, "Fetch", data.error_code)
    return _fetched(data, place, reach)


def only(found: list[Result]) -> Result:
    """Return the one partition of an answer; raises `UnusableAnswerError` unless there is one."""
    if len(found) != 1:
        raise UnusableAnswerError(f"an answer with {len(found)} partitions")
    return found[0]


def _fetched(data: FetchResponse.PartitionData, place: OffsetAndEpoch, reach: int) -> Fetched:
    if data.maybe_diverging_epoch is not None and data.diverging_epoch.epoch >= 0:
        # A leader that was replaced without knowing it may answer so too: another one is asked.
        raise UnusableAnswerError(
            f"the leader's log has no record {place.offset - 1} of epoch {place.epoch}: its epoch "
            f"{data.diverging_epoch.epoch} ends at {data.diverging_epoch.end_offset}. Is the "
            "checkpoint that of another log?"
        )
    if data.high_watermark < max(reach, 0):
        raise UnusableAnswerError(f"the high watermark is {data.high_watermark} yet")
    snapshot = None
    if data.maybe_snapshot_id is not None and data.snapshot_id.end_offset >= 0:
        snapshot = OffsetAndEpoch(data.snapshot_id.end_offset, data.snapshot_id.epoch)
    batches: tuple[RecordBatch, ...] = ()
    if snapshot is None:
        batches = tuple(_committed(data.records or b"", place.offset, data.high_watermark))
        if not batches and place.offset < data.high_watermark:
            raise UnusableAnswerError(f"no whole batch with offset {place.offset}")
    return Fetched(data.high_watermark, data.log_start_offset, snapshot, batches)


def _committed(
    records: bytes | memoryview, offset: int, high_watermark: int
) -> Iterable[RecordBatch]:
    """Yield batches below the high watermark, each verified, and each where the last one ended."""
    expected: int | None = None
    try:
        for batch in read_batches(records, is_cut_allowed=True):
            if batch.next_offset <= offset:
                continue
            if batch.next_offset > high_watermark:
                return
            batch.verify()
            if batch.base_offset > offset if expected is None else batch.base_offset != expected:
                problem = f"offset {batch.base_offset} where {expected or offset} belongs"
                raise UnusableAnswerError(problem)
            expected = batch.next_offset
            yield batch
    except WireError as error:
        raise UnusableAnswerError(str(error)) from None


def read_log(
    client: QuorumClient, start: OffsetAndEpoch, end_offset: int, *, path: str
) -> Iterator[BatchOrDamage]:
    """Yield the batches that begin from `start` on and before `end_offset`, all committed.

    `start.epoch` is as in `fetch`. Where the log does not have them any more, the rest is one
    `Damage`. Raises `QuorumError`.
    """
    place = start
    while place.offset < end_offset:
        fetched = fetch(client, place, reach=end_offset)
        if fetched.snapshot is not None:
            reason = (
                f"the controllers have no records before {fetched.log_start_offset} any more, but "
                f"the snapshot of offset {fetched.snapshot.offset}"
            )
            yield Damage(DamageKind.DELETED, path, 0, place.offset, end_offset - 1, reason)
            return
        for batch in fetched.batches:
            if batch.base_offset >= end_offset:
                return
            # A batch that begins before the range belongs to the range before.
            if batch.base_offset >= place.offset:
                yield batch
            place = OffsetAndEpoch(batch.next_offset, batch.partition_leader_epoch)
