"""New partitions: their replicas, and the records that create them."""

from collections.abc import Sequence

from kvorum.controller.cluster_rules import ClusterRules
from kvorum.controller.manual_assignment import (
    check_assignment,
    check_some_replica_is_active,
    invalid_assignment,
)
from kvorum.controller.settings import ControllerRequestContext
from kvorum.controller.striped_replica_placer import Racks, usable_brokers
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import partition_record
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.metadata.request_error import RequestError, invalid_request
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.create_topics import CreateTopicsRequest

NOBODY_ACTIVE = "All brokers are currently fenced or in controlled shutdown."


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
