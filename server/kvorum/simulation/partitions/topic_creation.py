"""The records with which a world's metadata log begins: the cluster's features, and one topic."""

from __future__ import annotations

from random import Random

from kvorum.controller.activation_records_generator import activation_records
from kvorum.metadata.bootstrap import bootstrap_from_features
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import ELR_VERSION_FEATURE, default_feature_levels
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.simulation.partitions.quorum import ControllerQuorum
from kvorum.simulation.partitions.settings import TOPIC, TOPIC_ID, WorldSettings, directory_id
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord


def activate(quorum: ControllerQuorum, settings: WorldSettings) -> None:
    """Write what the first active controller of a new cluster writes."""
    version = MetadataVersion.V4_3_IV0
    levels = {
        **default_feature_levels(version),
        ELR_VERSION_FEATURE: int(settings.is_elr_enabled),
    }
    bootstrap = bootstrap_from_features(
        version, {name: level for name, level in levels.items() if level}, source="simulation"
    )
    result = activation_records(MetadataImage(), bootstrap, quorum.active.settings)
    quorum.append(quorum.active, result.records, is_atomic=result.is_atomic)


def create_topic(
    quorum: ControllerQuorum, settings: WorldSettings, broker_ids: list[int], random: Random
) -> None:
    """Write the topic's records directly, because its assignment is drawn here."""
    configs = {"min.insync.replicas": str(settings.min_insync_replicas)}
    if settings.is_unclean_enabled:
        configs["unclean.leader.election.enable"] = "true"
    records: list[RecordAndVersion] = [(TopicRecord(name=TOPIC, topic_id=TOPIC_ID), 0)]
    for name, value in configs.items():
        record = ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name=TOPIC, name=name, value=value
        )
        records.append((record, 0))
    version = quorum.active.image.metadata_version.partition_record_version
    for index in range(settings.partitions):
        replicas = random.sample(broker_ids, settings.replicas)
        records.append((_partition_record(index, replicas), version))
    quorum.append(quorum.active, tuple(records), is_atomic=True)


def _partition_record(index: int, replicas: list[int]) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=TOPIC_ID,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory_id(one) for one in replicas],
    )
