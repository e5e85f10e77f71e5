"""The records with which a world's metadata log begins: the cluster's features, and its topics."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from kvorum.controller.activation_records_generator import activation_records
from kvorum.groups.coordinator_partition import GROUP_METADATA_TOPIC
from kvorum.metadata.bootstrap import bootstrap_from_features
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import ELR_VERSION_FEATURE, default_feature_levels
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.record_types import RecordAndVersion
from kvorum.simulation.partitions.quorum import ControllerQuorum
from kvorum.simulation.partitions.settings import (
    OFFSETS_ID,
    ROOTS,
    TOPIC,
    TOPIC_ID,
    WorldSettings,
    directory_id,
)
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


def create_topics(
    quorum: ControllerQuorum, settings: WorldSettings, broker_ids: list[int], random: Random
) -> None:
    """Write the topics' records directly, because their assignments are drawn here."""
    configs = {"min.insync.replicas": str(settings.min_insync_replicas)}
    unclean = {"unclean.leader.election.enable": "true"} if settings.is_unclean_enabled else {}

    def create(name: str, topic_id: bytes, count: int, configs: Mapping[str, str]) -> None:
        version = quorum.active.image.metadata_version.partition_record_version
        records: list[RecordAndVersion] = [
            (TopicRecord(name=name, topic_id=topic_id), 0),
            *((_config_record(name, key, value), 0) for key, value in configs.items()),
        ]
        for index in range(count):
            replicas = random.sample(broker_ids, settings.replicas)
            directories = [random.randrange(len(ROOTS)) for _ in replicas]
            record = _partition_record(topic_id, index, replicas, directories)
            records.append((record, version))
        quorum.append(quorum.active, tuple(records), is_atomic=True)

    create(TOPIC, TOPIC_ID, settings.partitions, {**configs, **unclean})
    create(GROUP_METADATA_TOPIC, OFFSETS_ID, 1, configs)


def _config_record(topic: str, key: str, value: str) -> ConfigRecord:
    return ConfigRecord(
        resource_type=ResourceType.TOPIC, resource_name=topic, name=key, value=value
    )


def _partition_record(
    topic_id: bytes, index: int, replicas: list[int], directories: list[int]
) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=replicas,
        isr=replicas,
        leader=replicas[0],
        leader_epoch=0,
        partition_epoch=0,
        directories=[directory_id(*place) for place in zip(replicas, directories, strict=True)],
    )
