"""Conditions in which a partition is not fully available, from its state and its minimal ISR."""

from __future__ import annotations

from typing import Final

from kvorum.metadata.configs_image import ConfigsImage
from kvorum.metadata.effective_configs import (
    MIN_INSYNC_REPLICAS,
    BrokerConfigLayers,
    effective_topic_config,
    whole_number,
)
from kvorum.metadata.partition import NO_LEADER, PartitionRegistration
from kvorum.spark.history.partition_rows import Condition

AVAILABLE: Final[tuple[Condition, ...]] = ()


def conditions_of(
    partition: PartitionRegistration, min_insync_replicas: int
) -> tuple[Condition, ...]:
    """Return the conditions in which `partition` is, none where it is fully available.

    Kafka's rules: replicas that are being added are not counted as missing, and the minimal ISR is
    limited to the number of replicas.
    """
    in_sync = len(partition.isr)
    replicas = len(partition.replicas)
    is_under_replicated = in_sync < replicas - len(partition.adding_replicas)
    is_under_min_isr = in_sync < min_insync_replicas and in_sync < replicas
    if partition.leader != NO_LEADER and not is_under_replicated and not is_under_min_isr:
        return AVAILABLE
    found: list[Condition] = []
    if partition.leader == NO_LEADER:
        found.append(Condition.OFFLINE)
    if is_under_replicated:
        found.append(Condition.UNDER_REPLICATED)
    if is_under_min_isr:
        found.append(Condition.UNDER_MIN_ISR)
    return tuple(found)


def min_insync_replicas(configs: ConfigsImage, topic_name: str) -> int:
    """Return min.insync.replicas of a topic as far as the log has it.

    It is the topic's own value, else the cluster's dynamic default, else Kafka's default of 1. A
    value in the brokers' properties files is not in the log.
    """
    config = effective_topic_config(
        MIN_INSYNC_REPLICAS,
        configs.of_topic(topic_name),
        BrokerConfigLayers(cluster=configs.of_cluster()),
    )
    return whole_number(config)
