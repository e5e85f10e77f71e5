"""New partitions: the checks of a request, their replicas, and the records that create them."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.settings import ControllerRequestContext
from kvorum.controller.striped_replica_placer import Racks, usable_brokers
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import partition_record
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest

PARTITIONS_PER_REQUEST_MAX: Final = 10_000
SEPARATORS: Final = "._"
"""The two characters that are the same in names of metrics; '.' sorts before '_'."""
SEPARATORS_MAX: Final = 8
"""Up to this number of them in a name, every spelling is looked up; beyond, all topics are."""
NOBODY_ACTIVE = "All brokers are currently fenced or in controlled shutdown."


def check_assignment(
    cluster: ClusterImage, replicas: Sequence[int], *, replication_factor: int | None
) -> None:
    """Raise `RequestError` unless `replicas` are brokers that take replicas, each named once.

    Such a broker is registered, and has a log directory that is not cordoned (KIP-1066).
    `replication_factor` is that of the preceding partitions, or None for the first one.
    """
    if not replicas:
        raise invalid_assignment("The manual partition assignment includes an empty replica list.")
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in cluster.brokers:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but no such "
                "broker is registered."
            )
        if not cluster.brokers[broker_id].has_uncordoned_directory:
            raise invalid_assignment(
                f"The manual partition assignment includes broker {broker_id}, but all its log "
                "directories are cordoned."
            )
        if broker_id == previous:
            raise invalid_assignment(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise invalid_assignment(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def check_some_replica_is_active(
    cluster: ClusterImage, replicas: Sequence[int], *, partition: int
) -> None:
    """Raise `RequestError` where no replica could lead the partition."""
    if not any(cluster.is_broker_active(broker_id) for broker_id in replicas):
        raise invalid_assignment(
            "All brokers specified in the manual partition assignment for partition "
            f"{partition} are fenced or in controlled shutdown."
        )


def invalid_assignment(message: str) -> RequestError:
    """Return the refusal INVALID_REPLICA_ASSIGNMENT with a message."""
    return RequestError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


class CollidingNames:
    """The topics whose name differs from another one only in '.' against '_'.

    The metrics of such topics would have the same names.
    """

    def __init__(self, topics: TopicsImage) -> None:
        self._topics = topics
        self._by_unified_name: dict[str, str] | None = None

    def existing(self, name: str) -> str | None:
        """Return an existing topic that `name` collides with, or None."""
        count = sum(map(name.count, SEPARATORS))
        if count == 0:
            return None
        if count <= SEPARATORS_MAX:
            return next(filter(self._topics.ids.__contains__, _spellings(name)), None)
        return self._by_metric_name().get(_unified(name))

    def _by_metric_name(self) -> dict[str, str]:
        if self._by_unified_name is None:
            self._by_unified_name = {
                _unified(existing): existing for existing in sorted(self._topics.ids, reverse=True)
            }
        return self._by_unified_name


def _spellings(name: str) -> Iterator[str]:
    """Yield every name whose metrics have the names of those of `name`, in order."""
    choices = [SEPARATORS if character in SEPARATORS else character for character in name]
    return map("".join, itertools.product(*choices))


def _unified(name: str) -> str:
    """Return `name` as it appears in names of metrics."""
    return name.replace(".", "_")


def check_total(counts: Iterable[int], message: str) -> None:
    """Raise `RequestError` POLICY_VIOLATION with `message` where a request adds too much."""
    if sum(counts) > PARTITIONS_PER_REQUEST_MAX:
        raise RequestError(ErrorCode.POLICY_VIOLATION, message)


def assigned_partitions(
    image: MetadataImage, topic: CreateTopicsRequest.CreatableTopic
) -> list[list[int]]:
    """Return the replicas that the request assigns to each partition, or refuse the assignment."""
    if topic.replication_factor != -1:
        raise invalid_request(
            "A manual partition assignment was specified, but replication factor was not set to -1."
        )
    if topic.num_partitions != -1:
        raise invalid_request(
            "A manual partition assignment was specified, but numPartitions was not set to -1."
        )
    replication_factor: int | None = None
    replicas: dict[int, list[int]] = {}
    for assignment in topic.assignments:
        index = assignment.partition_index
        if index in replicas:
            raise invalid_assignment(
                f"Found multiple manual partition assignments for partition {index}"
            )
        check_assignment(
            image.cluster, assignment.broker_ids, replication_factor=replication_factor
        )
        replication_factor = len(assignment.broker_ids)
        check_some_replica_is_active(image.cluster, assignment.broker_ids, partition=index)
        replicas[index] = assignment.broker_ids
    if sorted(replicas) != list(range(len(replicas))):
        raise invalid_assignment("partitions should be a consecutive 0-based integer sequence")
    return [replicas[index] for index in range(len(replicas))]


class Placement:
    """A placer of partitions on the brokers of one image, which are collected only once."""

    def __init__(self, image: MetadataImage, context: ControllerRequestContext) -> None:
        self._racks = Racks(usable_brokers(image.cluster, context.sessions))
        self._active = frozenset(
            broker_id for broker_id, broker in image.cluster.brokers.items() if broker.is_active
        )
        self._random = context.random

    def place(self, *, partition_count: int, replication_factor: int) -> list[list[int]]:
        """Return the replicas of each partition of one topic; raise `RequestError` to refuse."""
        partitions = self._racks.place(
            partition_count=partition_count,
            replication_factor=replication_factor,
            random=self._random,
        )
        for replicas in partitions:
            if self._active.isdisjoint(replicas):
                raise RequestError(ErrorCode.INVALID_REPLICATION_FACTOR, NOBODY_ACTIVE)
        return partitions


def new_partition(rules: ClusterRules, replicas: Sequence[int]) -> PartitionRegistration:
    """Return a partition whose ISR is its active replicas and whose leader is the first of them."""
    isr = tuple(replica for replica in replicas if rules.image.cluster.is_broker_active(replica))
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=tuple(rules.default_directory(replica) for replica in replicas),
        isr=isr,
        leader=isr[0],
    )


def new_partition_record(
    image: MetadataImage, partition: PartitionRegistration, *, topic_id: bytes, index: int
) -> RecordAndVersion:
    """Return the record that creates `partition`."""
    version = image.metadata_version
    record = partition_record(
        partition,
        topic_id=topic_id,
        index=index,
        version=version,
        is_elr_enabled=image.features.is_elr_enabled,
    )
    return record, version.partition_record_version
