"""Fetch (1) on a broker: partitions that it has replicas of, and the metadata topic if readable.

1. The fetch session, if there is one, says which partitions are asked for (KIP-227).
2. A partition that is unknown, forbidden or not hosted here is refused. For a consumer, the logs of
   partitions that were created just now are waited for. A follower's fetch has many others, which
   must not wait.
3. The others are read. The first one with records returns a batch of any size; what the others
   return fits into the rest of the response.
4. Unless there is enough, or something to report at once, the response waits for `max_wait_ms`.
5. A consumer's response counts for its quota; what a follower gets counts for the throttled
   replicas (KIP-73).

==========  ======================================================================================
version     brings
==========  ======================================================================================
4           isolation levels and aborted transactions; the first one that Kafka 4 serves
5           the start of the log, also that of a follower in the request
6           KAFKA_STORAGE_ERROR, for which older clients get NOT_LEADER_OR_FOLLOWER
7           fetch sessions (KIP-227)
9           the leader epoch that the client knows (KIP-320)
11          the rack of a consumer, and a follower to read from (KIP-392)
12          the flexible encoding; the last fetched epoch, and where a log diverges (KIP-595)
13          topic ids in place of names (KIP-516)
15          the broker epoch of a follower (KIP-903)
16          the present leader, in a refusal because of another one (KIP-951)
17          the directory id of a follower (KIP-853)
18          the high watermark that a follower knows (KIP-1166)
==========  ======================================================================================
"""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import partial
from typing import Final, cast

from kvorum.broker.broker_topic_stats import BrokerTopicStats
from kvorum.broker.epoch_end_offset import NO_EPOCH
from kvorum.broker.fetch_isolation import IsolationLevel
from kvorum.broker.partition import Partition
from kvorum.broker.replica_selector import PartitionView, ReplicaView
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import PER_RESOURCE, RequestError
from kvorum.metadata.topic_names import CLUSTER_METADATA_TOPIC
from kvorum.metadata.topics_image import TopicImage
from kvorum.node.broker.delayed_fetch import FetchResult, fetch_messages
from kvorum.node.broker.fetch_params import (
    FetchingReplica,
    FetchParams,
    PartitionFetch,
    PreferredReadReplica,
)
from kvorum.node.broker.metadata_topic import MetadataTopic
from kvorum.node.broker.readable_partition import ReadablePartition
from kvorum.node.handlers.current_leader import CurrentLeaders
from kvorum.node.raft.translation.fetch import refuse_fetch
from kvorum.node.services import BrokerApi, BrokerServices, TopicChoice
from kvorum.node.serving.request import IncomingRequest
from kvorum.storage.topic_partition import TopicPartition
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import METADATA_TOPIC_ID

SIZE_BYTES: Final = 4
"""The size before a response, which counts against a quota too."""
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
FIRST_VERSION_WITH_STORAGE_ERROR: Final = 6
FIRST_VERSION_FROM_FOLLOWERS: Final = 11
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13
FIRST_VERSION_WITH_LEADERS: Final = 16
_NOT_LED_HERE: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
_DEFAULT_ISOLATION: Final = IsolationLevel.READ_UNCOMMITTED


def throttle(
    replica: FetchingReplica, broker: BrokerServices
) -> Callable[[ReadablePartition], bool]:
    """Return what says of a partition whether its records are held back from a follower."""
    quota = broker.replication_quotas.leader
    clock = broker.runtime
    return lambda partition: (
        isinstance(partition, Partition)
        and quota.should_leader_throttle(partition, replica.broker_id, clock.monotonic_ms())
    )


def record_throttled(response: FetchResponse, version: int, broker: BrokerServices) -> None:
    """Count the throttled part of a follower's response, as long as it is on the wire."""
    quota = broker.replication_quotas.leader
    by_id = broker.loader.published.topics.by_id
    records_size = 0
    throttled: list[FetchResponse.FetchableTopicResponse] = []
    for topic in response.responses:
        known = by_id.get(topic.topic_id)
        name = topic.topic or ("" if known is None else known.name)
        partitions = [
            one
            for one in topic.partitions
            if quota.is_throttled(TopicPartition(name, one.partition_index))
        ]
        records_size += sum(len(one.records or b"") for one in partitions)
        if partitions:
            throttled.append(
                FetchResponse.FetchableTopicResponse(
                    topic=topic.topic,
                    topic_id=topic.topic_id,
                    partitions=[_without_records(one) for one in partitions],
                )
            )
    if throttled:
        rest = FetchResponse(responses=throttled).encode(version)
        quota.record(SIZE_BYTES + len(rest) + records_size, broker.runtime.monotonic_ms())


def _without_records(data: FetchResponse.PartitionData) -> FetchResponse.PartitionData:
    bare = copy(data)
    bare.records = b""
    return bare


def preferred_read_replica(
    request: IncomingRequest[FetchRequest], broker: BrokerServices
) -> PreferredReadReplica | None:
    """Return what finds the follower for the consumer that a request is from; None without one."""
    selector = broker.replica_selector
    if selector is None:
        return None
    cluster = broker.loader.published.cluster
    now_ms = broker.runtime.monotonic_ms()

    def rack_of(broker_id: int) -> str | None:
        found = cluster.brokers.get(broker_id)
        return None if found is None or found.endpoint(request.listener) is None else found.rack

    def find(partition: ReadablePartition, offset: int) -> int | None:
        if not isinstance(partition, Partition) or partition.leader is None:
            return None
        leader_id = broker.replicas.broker_id
        end_offset = partition.log.log_end_offset
        leader = ReplicaView(leader_id, rack_of(leader_id), end_offset, 0.0)
        followers = [
            ReplicaView(
                follower,
                rack_of(follower),
                progress.log_end_offset,
                now_ms - progress.last_caught_up_ms,
            )
            for follower, progress in partition.leader.in_sync_followers()
            if progress.log_start_offset <= offset <= progress.log_end_offset
        ]
        view = PartitionView((*followers, leader), leader)
        selected = selector.select(request.body.rack_id, view)
        return None if selected == leader else selected.broker_id

    return find


async def answer(request: IncomingRequest[FetchRequest], broker: BrokerServices) -> Message:
    """Read what is asked for; wait for records where nothing is refused."""
    body = request.body
    by_id = broker.loader.published.topics.by_id

    def name_of(topic_id: bytes) -> str | None:
        if topic_id == METADATA_TOPIC_ID and broker.metadata_topic is not None:
            return CLUSTER_METADATA_TOPIC
        topic = by_id.get(topic_id)
        return None if topic is None else topic.name

    context = broker.fetch_sessions.new_context(
        body, version=request.version, names=name_of, now_ms=broker.runtime.monotonic_ms()
    )
    responses = await _records(context.topics, request, broker)
    endpoints = _name_leaders(responses, request, broker)
    if _replica(body) is not None:
        # A follower's fetch counts for no client. As in Kafka, it gets no endpoints.
        request.progress.throttle_time_ms = 0
        response = context.response(responses, now_ms=broker.runtime.monotonic_ms())
        record_throttled(response, request.version, broker)
        _count_bytes_out(response, broker.topic_stats, is_follower=True)
        return response
    throttle_time_ms = broker.throttling.throttle_fetch(
        request, lambda: context.response_size(responses, version=request.version)
    )
    if throttle_time_ms > 0:
        response = context.throttled_response(throttle_time_ms)
    else:
        response = context.response(responses, now_ms=broker.runtime.monotonic_ms())
    response.node_endpoints = endpoints
    _count_bytes_out(response, broker.topic_stats, is_follower=False)
    return response


def _count_bytes_out(
    response: FetchResponse, stats: BrokerTopicStats, *, is_follower: bool
) -> None:
    for topic in response.responses:
        size = sum(len(one.records or b"") for one in topic.partitions)
        if topic.topic:
            stats.on_bytes_out(topic.topic, size_bytes=size, is_follower=is_follower)


def _name_leaders(
    responses: list[FetchResponse.FetchableTopicResponse],
    request: IncomingRequest[FetchRequest],
    broker: BrokerServices,
) -> list[FetchResponse.NodeEndpoint]:
    """Name the leader in each refusal for another leader's sake; return where leaders are."""
    if request.version < FIRST_VERSION_WITH_LEADERS:
        return []
    leaders = CurrentLeaders(broker.loader.published, request.listener)
    for topic in responses:
        for partition in topic.partitions:
            if partition.error_code in _NOT_LED_HERE:
                leader = leaders.of(topic.topic, topic.topic_id, partition.partition_index)
                partition.current_leader = FetchResponse.LeaderIdAndEpoch(*leader)
    return [FetchResponse.NodeEndpoint(*endpoint) for endpoint in leaders.endpoints]


async def _records(
    topics: list[FetchRequest.FetchTopic],
    request: IncomingRequest[FetchRequest],
    broker: BrokerServices,
) -> list[FetchResponse.FetchableTopicResponse]:
    """Return what was read, topic by topic, and after it what is refused."""
    body = request.body
    replica = _replica(body)
    if replica is None:
        await broker.hosting.wait_until_led(_partitions_of(topics, broker))
    elif not request.access.allows_on_cluster(AclOperation.CLUSTER_ACTION):
        return [_refused_topic(topic, request.version) for topic in topics]
    admitted: list[tuple[FetchRequest.FetchTopic, list[PartitionFetch]]] = []
    refused: list[FetchResponse.FetchableTopicResponse] = []
    for topic in topics:
        fetches, refusals = await _sorted_out(topic, request, broker)
        admitted.append((topic, fetches))
        if refusals:
            refused.append(_of_topic(topic, refusals, request.version))
    everything = [fetch for _, fetches in admitted for fetch in fetches]
    if everything and body.isolation_level not in {READ_UNCOMMITTED, READ_COMMITTED}:
        raise RequestError.with_default_message(ErrorCode.UNKNOWN_SERVER_ERROR)
    max_bytes = min(body.max_bytes, broker.config.network.fetch_bytes_max)
    if replica is None:
        max_bytes = min(max_bytes, broker.throttling.fetch_bytes_max(request))
    params = FetchParams(
        max_wait_ms=body.max_wait_ms if everything and not refused else 0,
        min_bytes=min(body.min_bytes, max_bytes),
        max_bytes=max_bytes,
        isolation=IsolationLevel(body.isolation_level) if everything else _DEFAULT_ISOLATION,
        replica=replica,
        is_leader_needed=request.version < FIRST_VERSION_FROM_FOLLOWERS,
        now_ms=broker.runtime.monotonic_ms(),
        is_throttled=None if replica is None else throttle(replica, broker),
        preferred_read_replica=(
            preferred_read_replica(request, broker)
            if replica is None and request.version >= FIRST_VERSION_FROM_FOLLOWERS
            else None
        ),
    )
    results = iter(
        await fetch_messages(
            everything,
            params,
            broker.purgatories.fetch,
            broker.topic_stats,
            broker.replicas.disk_threads,
        )
    )
    read = [
        _of_topic(
            topic,
            [_read_partition(fetch, next(results), params) for fetch in fetches],
            request.version,
        )
        for topic, fetches in admitted
        if fetches
    ]
    # As in Kafka, ids that no topic has are refused before anything else is looked at.
    return read + sorted(refused, key=_is_of_known_topic)


def _partitions_of(
    topics: Iterable[FetchRequest.FetchTopic], broker: BrokerServices
) -> Iterator[tuple[TopicImage, int]]:
    """Yield the partitions that are asked for, by topic and index, of topics that exist."""
    known = broker.loader.published.topics
    for topic in topics:
        found = known.by_name(topic.topic) or known.by_id.get(topic.topic_id)
        if found is not None:
            yield from ((found, requested.partition) for requested in topic.partitions)


def _is_of_known_topic(refused: FetchResponse.FetchableTopicResponse) -> bool:
    return refused.partitions[0].error_code != ErrorCode.UNKNOWN_TOPIC_ID


async def _sorted_out(
    topic: FetchRequest.FetchTopic, request: IncomingRequest[FetchRequest], broker: BrokerServices
) -> tuple[list[PartitionFetch], list[FetchResponse.PartitionData]]:
    """Return the partitions of a topic that may be read, and the refusals of the others."""
    # As in Kafka, what is asked last about a partition counts.
    by_index = {requested.partition: requested for requested in topic.partitions}
    fetches: list[PartitionFetch] = []
    refusals: list[FetchResponse.PartitionData] = []
    try:
        find = _finder(topic, request, broker)
    except RequestError as error:
        return [], [_refused_partition(index, error.code) for index in by_index]
    for requested in by_index.values():
        try:
            partition = find(requested.partition)
            if isinstance(partition, MetadataTopic):
                await partition.wait_to_read(requested.fetch_offset)
        except RequestError as error:
            refusals.append(_refused_partition(requested.partition, error.code))
            continue
        fetches.append(
            PartitionFetch(
                partition,
                requested.fetch_offset,
                requested.partition_max_bytes,
                # As in Kafka, every negative epoch means none.
                max(requested.current_leader_epoch, NO_EPOCH),
                max(requested.last_fetched_epoch, NO_EPOCH),
                requested.log_start_offset,
                topic.topic_id,
            )
        )
    return fetches, refusals


def _finder(
    topic: FetchRequest.FetchTopic, request: IncomingRequest[FetchRequest], broker: BrokerServices
) -> Callable[[int], ReadablePartition]:
    """Return what finds the partitions of a topic that the client may read, by their indexes."""
    served = broker.metadata_topic
    if served is not None and topic.topic == CLUSTER_METADATA_TOPIC:
        if not request.access.allows_on_cluster(AclOperation.DESCRIBE):
            raise RequestError.with_default_message(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return served.partition
    hosting = broker.hosting
    is_by_id = request.version >= FIRST_VERSION_WITH_TOPIC_IDS
    choice = TopicChoice(topic.topic, topic.topic_id, is_by_id, references=len(topic.partitions))
    if _replica(request.body) is not None:
        # Followers have a permission on the cluster, and need none on the topic.
        return partial(hosting.partition, hosting.topic_for_broker(choice))
    found = hosting.topic(choice, AclOperation.READ, request.access)
    return partial(hosting.partition, found)


def _replica(body: FetchRequest) -> FetchingReplica | None:
    """Return the follower that fetches, None for a consumer; new versions have its epoch too."""
    if body.replica_state.replica_id >= 0:
        return FetchingReplica(body.replica_state.replica_id, body.replica_state.replica_epoch)
    return FetchingReplica(body.replica_id, -1) if body.replica_id >= 0 else None


def _refused_topic(
    topic: FetchRequest.FetchTopic, version: int
) -> FetchResponse.FetchableTopicResponse:
    """Return the response to a follower that may not be one."""
    indexes = dict.fromkeys(requested.partition for requested in topic.partitions)
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return _of_topic(topic, [_refused_partition(index, code) for index in indexes], version)


def _of_topic(
    topic: FetchRequest.FetchTopic, partitions: list[FetchResponse.PartitionData], version: int
) -> FetchResponse.FetchableTopicResponse:
    if version < FIRST_VERSION_WITH_STORAGE_ERROR:
        for one in partitions:
            if one.error_code == ErrorCode.KAFKA_STORAGE_ERROR:
                one.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return FetchResponse.FetchableTopicResponse(
        topic=topic.topic, topic_id=topic.topic_id, partitions=partitions
    )


def _read_partition(
    fetch: PartitionFetch, result: FetchResult, params: FetchParams
) -> FetchResponse.PartitionData:
    read = result.read
    index = fetch.partition.topic_partition.partition
    if read is None:
        return FetchResponse.PartitionData(
            partition_index=index,
            error_code=result.error,
            high_watermark=-1,
            aborted_transactions=None,
            records=b"",
        )
    are_aborted_named = (
        params.isolation is IsolationLevel.READ_COMMITTED
        and params.replica is None
        and read.diverging is None
    )
    data = FetchResponse.PartitionData(
        partition_index=index,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=[
            FetchResponse.AbortedTransaction(one.producer_id, one.first_offset)
            for one in read.aborted
        ]
        if are_aborted_named
        else None,
        # A range of a file has a length, and is a part of its own in the encoded response.
        records=cast("bytes", read.records),
    )
    if result.preferred_read_replica is not None:
        data.preferred_read_replica = result.preferred_read_replica
    if read.diverging is not None:
        data.diverging_epoch = FetchResponse.EpochEndOffset(*read.diverging)
    return data


def _refused_partition(index: int, code: ErrorCode) -> FetchResponse.PartitionData:
    data = FetchResponse.PartitionData(
        partition_index=index, error_code=code, high_watermark=-1, records=b""
    )
    if code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        # Kafka has tried to read such a partition; the others it refuses before.
        data.aborted_transactions = None
    return data


API: Final = BrokerApi(
    request=FetchRequest, permission=PER_RESOURCE, answer=answer, refuse=refuse_fetch
)
