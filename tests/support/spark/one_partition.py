"""A cluster with one partition, and what may be done to it."""

from __future__ import annotations

from tests.support.controller_under_test import ControllerUnderTest, started_cluster

from kvorum.metadata.partition import PartitionRegistration
from kvorum.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestBrokerState,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
)
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsRequestReassignableTopic,
)
from kvorum.wire.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableReplicaAssignment,
    CreateTopicsRequestCreatableTopic,
    CreateTopicsRequestCreatableTopicConfig,
)
from kvorum.wire.messages.elect_leaders import ElectLeadersRequest

PREFERRED, UNCLEAN = 0, 1


def cluster_with_topic(*replicas: int, is_unclean_enabled: bool = False) -> ControllerUnderTest:
    """A cluster of brokers 1 to 4 with a topic of one partition, which the first replica leads."""
    controller = started_cluster(brokers=4)
    configs = [CreateTopicsRequestCreatableTopicConfig("unclean.leader.election.enable", "true")]
    controller.ask(
        CreateTopicsRequest(
            topics=[
                CreateTopicsRequestCreatableTopic(
                    name="orders",
                    num_partitions=-1,
                    replication_factor=-1,
                    assignments=[CreateTopicsRequestCreatableReplicaAssignment(0, list(replicas))],
                    configs=configs if is_unclean_enabled else [],
                )
            ]
        )
    )
    assert partition_of(controller).leader == replicas[0]
    return controller


def partition_of(controller: ControllerUnderTest) -> PartitionRegistration:
    topic = controller.image.topics.by_name("orders")
    assert topic is not None
    return topic.partitions[0]


def propose_isr(controller: ControllerUnderTest, *isr: int) -> None:
    """Let the leader of the topic's partition change its ISR."""
    partition = partition_of(controller)
    brokers = controller.image.cluster.brokers
    controller.ask(
        AlterPartitionRequest(
            broker_id=partition.leader,
            broker_epoch=brokers[partition.leader].epoch,
            topics=[
                AlterPartitionRequestTopicData(
                    topic_id=controller.image.topics.ids["orders"],
                    partitions=[
                        AlterPartitionRequestPartitionData(
                            partition_index=0,
                            leader_epoch=partition.leader_epoch,
                            partition_epoch=partition.partition_epoch,
                            new_isr_with_epochs=[
                                AlterPartitionRequestBrokerState(id_, brokers[id_].epoch)
                                for id_ in isr
                            ],
                        )
                    ],
                )
            ],
        )
    )


def fence(controller: ControllerUnderTest, broker_id: int) -> None:
    controller.heartbeat(broker_id, want_fence=True)
    assert controller.image.cluster.brokers[broker_id].is_fenced


def elect(controller: ControllerUnderTest, election_type: int) -> None:
    controller.ask(ElectLeadersRequest(election_type=election_type, topic_partitions=None))


def reassign(controller: ControllerUnderTest, replicas: list[int] | None) -> None:
    """Begin a reassignment, or cancel it."""
    controller.ask(
        AlterPartitionReassignmentsRequest(
            topics=[
                AlterPartitionReassignmentsRequestReassignableTopic(
                    name="orders",
                    partitions=[
                        AlterPartitionReassignmentsRequestReassignablePartition(0, replicas)
                    ],
                )
            ]
        )
    )
