"""Fetches as a simulated broker answers them, by the real partitions."""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Final, TypeVar, cast

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.partition import NO_EPOCH, IsolationLevel
from kvorum.node.broker.delayed_fetch import (
    DelayedOperationPurgatory,
    FetchingReplica,
    FetchParams,
    FetchResult,
    PartitionFetch,
    fetch_messages,
)
from kvorum.node.broker.replica_manager import ReplicaManager
from kvorum.node.event_loop import Runtime
from kvorum.node.handlers.fetch import FIRST_VERSION_FROM_FOLLOWERS
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.network import Reply
from kvorum.simulation.partitions.surroundings import Surroundings
from kvorum.storage.log.file_records import FileRecords, TruncatedRecordsError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse

_FETCH_WAIT_MS_MAX: Final = 10.0
_FULL_SOCKET: Final = 0.1
_FULL_SOCKET_MS_MAX: Final = 60.0
Result = TypeVar("Result")


class FetchHandler:
    """Answers fetches of followers and consumers; `guard` makes a callback one of the process.

    A response is made at once; its records are read from their file when the socket takes them,
    which may be later. The connection breaks where the log was truncated meanwhile.
    """

    def __init__(
        self,
        replicas: ReplicaManager,
        around: Surroundings,
        guard: Callable[[Callable[[], None]], Callable[[], None]],
        runtime: Runtime,
    ) -> None:
        self._replicas = replicas
        self._around = around
        self._guard = guard
        self._purgatory = DelayedOperationPurgatory(runtime)
        self._stats = BrokerTopicStats()

    def handle(self, request: FetchRequest, reply: Reply, version: int) -> None:
        """Answer a fetch: that of a follower after a while, as if it had waited for records."""
        if _replica(request) is None:
            self._respond(request, reply, version)
            return
        delay_ms = self._around.random.uniform(0, _FETCH_WAIT_MS_MAX)
        respond = partial(self._respond, request, reply, version)
        self._around.events.after(delay_ms, self._guard(respond))

    def _respond(self, request: FetchRequest, reply: Reply, version: int) -> None:
        response = self._response(request, version)
        random = self._around.random
        if random.random() >= _FULL_SOCKET:
            reply(_sent(response))
            return
        delay_ms = random.uniform(0, _FULL_SOCKET_MS_MAX)
        self._around.events.after(delay_ms, self._guard(lambda: reply(_sent(response))))

    def _response(self, request: FetchRequest, version: int) -> FetchResponse:
        answers: dict[bytes, list[FetchResponse.PartitionData]] = {}
        fetches: list[PartitionFetch] = []
        for topic in request.topics:
            refused = answers.setdefault(topic.topic_id, [])
            for requested in topic.partitions:
                fetch = self._fetch_of(topic.topic_id, requested)
                if fetch is None:
                    refused.append(_refused(requested.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER))
                else:
                    fetches.append(fetch)
        params = self._params(request, version)
        results = _at_once(fetch_messages(fetches, params, self._purgatory, self._stats))
        for fetch, result in zip(fetches, results, strict=True):
            if result.read is not None:
                self._check_served(fetch, params)
            answers[fetch.topic_id].append(_answer(fetch, result))
        return FetchResponse(
            responses=[
                FetchResponse.FetchableTopicResponse(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in answers.items()
            ]
        )

    def _fetch_of(
        self, topic_id: bytes, requested: FetchRequest.FetchPartition
    ) -> PartitionFetch | None:
        partition = self._replicas.partition(topic_id, requested.partition)
        if partition is None:
            return None
        return PartitionFetch(
            partition,
            requested.fetch_offset,
            requested.partition_max_bytes,
            requested.current_leader_epoch,
            requested.last_fetched_epoch,
            requested.log_start_offset,
            topic_id,
        )

    def _check_served(self, fetch: PartitionFetch, params: FetchParams) -> None:
        """Check that who was served had to be; raises PropertyViolatedError."""
        replica, partition = params.replica, fetch.partition
        checks = self._around.checks
        message = f"broker {self._replicas.broker_id} served {replica or 'a client'}: {fetch[1:]}"
        if params.is_leader_needed:
            is_leader = partition.is_leader
            checks.demand(promises.FORMER_CLIENTS_ASK_LEADERS, message, holds=is_leader)
        brokers = self._around.servers[self._replicas.broker_id].image.cluster.brokers
        known = None if replica is None else brokers.get(replica.broker_id)
        if replica is None or known is None or known.is_fenced:
            return
        if replica.broker_epoch > NO_EPOCH:
            is_present = replica.broker_epoch >= known.epoch
            checks.demand(promises.ENDED_PROCESS_IS_REFUSED, message, holds=is_present)

    def _params(self, request: FetchRequest, version: int) -> FetchParams:
        replica = _replica(request)
        return FetchParams(
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=request.max_bytes,
            isolation=IsolationLevel(request.isolation_level),
            replica=replica,
            is_leader_needed=replica is None and version < FIRST_VERSION_FROM_FOLLOWERS,
            now_ms=self._around.now_ms,
        )


def _replica(request: FetchRequest) -> FetchingReplica | None:
    """Return the follower that fetches; before version 15 it does not name its epoch."""
    state = request.replica_state
    if state.replica_id >= 0:
        return FetchingReplica(state.replica_id, state.replica_epoch)
    return FetchingReplica(request.replica_id, NO_EPOCH) if request.replica_id >= 0 else None


def _sent(response: FetchResponse) -> FetchResponse | None:
    """Return a response with its records as bytes; None where they are not there any more."""
    try:
        for data in (data for topic in response.responses for data in topic.partitions):
            if isinstance(data.records, FileRecords):
                data.records = bytes(data.records)
    except (OSError, TruncatedRecordsError):
        return None
    return response


def _at_once(work: Coroutine[object, None, Result]) -> Result:
    """Return the result of a coroutine that does not wait for anything."""
    try:
        work.send(None)
    except StopIteration as end:
        result: Result = end.value
        return result
    raise RuntimeError("a fetch without a minimum does not wait")


def _refused(index: int, code: ErrorCode) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(index, error_code=code, high_watermark=-1, records=b"")


def _answer(fetch: PartitionFetch, result: FetchResult) -> FetchResponse.PartitionData:
    index, read = fetch.partition.topic_partition.partition, result.read
    if read is None:
        return _refused(index, result.error)
    data = FetchResponse.PartitionData(
        index,
        high_watermark=read.high_watermark,
        log_start_offset=read.log_start_offset,
        aborted_transactions=[
            FetchResponse.AbortedTransaction(one.producer_id, one.first_offset)
            for one in read.aborted
        ],
        # A range of a file, until the response is sent.
        records=cast("bytes", read.records),
    )
    if read.diverging is not None:
        data.diverging_epoch = FetchResponse.EpochEndOffset(*read.diverging)
    return data
