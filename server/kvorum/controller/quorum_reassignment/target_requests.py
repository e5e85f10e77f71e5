"""The target voters as the requests that state, replace and clear them (KIP-642)."""

from __future__ import annotations

from collections.abc import Sequence

from kvorum.metadata.config_operation import Operation
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.target_voters import TARGET_VOTERS, TargetVoters, target_voters_text
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsRequestReassignablePartition,
    AlterPartitionReassignmentsRequestReassignableTopic,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)


def reassignment_request(replicas: Sequence[int] | None) -> AlterPartitionReassignmentsRequest:
    """Return the request for voters by their ids; with None it cancels the target voters."""
    partition = AlterPartitionReassignmentsRequestReassignablePartition(
        partition_index=CLUSTER_METADATA_PARTITION,
        replicas=None if replicas is None else list(replicas),
    )
    topic = AlterPartitionReassignmentsRequestReassignableTopic(CLUSTER_METADATA_TOPIC, [partition])
    return AlterPartitionReassignmentsRequest(topics=[topic])


def configuration_request(targets: TargetVoters | None) -> IncrementalAlterConfigsRequest:
    """Return the request for voters by ids and directories; with None it clears the targets.

    It clears those that there are when the active controller reads it.
    """
    config = IncrementalAlterConfigsRequestAlterableConfig(
        TARGET_VOTERS,
        config_operation=Operation.DELETE if targets is None else Operation.SET,
        value=None if targets is None else target_voters_text(targets),
    )
    resource = IncrementalAlterConfigsRequestAlterConfigsResource(*CLUSTER_RESOURCE, [config])
    return IncrementalAlterConfigsRequest([resource])
