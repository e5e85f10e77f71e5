"""The first records of a cluster: its features, and topics whose assignments are drawn."""

from collections.abc import Mapping, Sequence
from random import Random

from kvorum.controller.api import ControllerResult, Pieces
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.features import (
    ELR_VERSION_FEATURE,
    KRAFT_VERSION_FEATURE,
    TRANSACTION_VERSION_FEATURE,
    kafka_feature_levels,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topic_names import (
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from kvorum.simulation.partitions.controller_tasks import PeriodicTask
from kvorum.simulation.partitions.settings import (
    DEAD_LETTERS_ID,
    OFFSETS_ID,
    OFFSETS_REPLICAS,
    ROOTS,
    SHARE_STATE_ID,
    TOPIC,
    TOPIC_ID,
    TRANSACTIONS_ID,
    ClusterSettings,
    directory_id,
)
from kvorum.simulation.partitions.share_group_settings import (
    DEAD_LETTER_QUEUE,
    SHARE_GROUP,
    STATE_REPLICAS,
)
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.topic_record import TopicRecord


def first_records(
    settings: ClusterSettings, broker_ids: Sequence[int], random: Random
) -> PeriodicTask:
    """Return what an active controller does until the cluster has its features and topics.

    The topics' records are written directly, because their assignments are drawn here.
    """
    # Clients that play the part of coordinators of transactions have the level of real ones.
    levels = {
        **kafka_feature_levels(LATEST_PRODUCTION_METADATA_VERSION),
        ELR_VERSION_FEATURE: int(settings.is_elr_enabled),
    }
    coordinated = settings.transactions
    if coordinated is not None:
        levels[TRANSACTION_VERSION_FEATURE] = coordinated.version
    # Control records of the log have that one.
    levels.pop(KRAFT_VERSION_FEATURE, None)
    topics = (
        *_topic_records(TOPIC, TOPIC_ID, settings.topic_configs(TOPIC)),
        *_partition_records(TOPIC_ID, settings.partitions, settings.replicas, broker_ids, random),
        *_topic_records(
            GROUP_METADATA_TOPIC, OFFSETS_ID, settings.topic_configs(GROUP_METADATA_TOPIC)
        ),
        *_partition_records(OFFSETS_ID, 1, OFFSETS_REPLICAS, broker_ids, random),
    )
    if coordinated is not None:
        name = TRANSACTION_STATE_TOPIC
        topics += (
            *_topic_records(name, TRANSACTIONS_ID, settings.topic_configs(name)),
            *_partition_records(
                TRANSACTIONS_ID, coordinated.partitions, OFFSETS_REPLICAS, broker_ids, random
            ),
        )
    share = settings.groups.share
    if share is not None:
        name = SHARE_GROUP_STATE_TOPIC
        topics += (
            *_config_records(ResourceType.GROUP, SHARE_GROUP, share.of_group),
            *_topic_records(name, SHARE_STATE_ID, settings.topic_configs(name)),
            *_partition_records(
                SHARE_STATE_ID, share.state_partitions, STATE_REPLICAS, broker_ids, random
            ),
        )
    queue = None if share is None else share.dead_letter_queue
    if queue is not None:
        name = DEAD_LETTER_QUEUE
        topics += (
            *_topic_records(name, DEAD_LETTERS_ID, settings.topic_configs(name)),
            *_partition_records(
                DEAD_LETTERS_ID,
                queue.partitions,
                settings.replicas,
                broker_ids,
                random,
            ),
        )

    def task(image: MetadataImage, _: ControllerRequestContext) -> Pieces[ControllerResult[bool]]:
        yield from ()
        features = [
            (FeatureLevelRecord(name=name, feature_level=level), 0)
            for name, level in levels.items()
            if image.features.level(name) != level
        ]
        has_brokers = all(one in image.cluster.brokers for one in broker_ids)
        if features or not has_brokers or TOPIC_ID in image.topics.by_id:
            return ControllerResult(False, tuple(features))
        return ControllerResult(False, topics)

    return task


def _topic_records(
    name: str, topic_id: bytes, configs: Mapping[str, str]
) -> list[RecordAndVersion]:
    topic = TopicRecord(name=name, topic_id=topic_id)
    return [(topic, 0), *_config_records(ResourceType.TOPIC, name, configs)]


def _config_records(
    kind: ResourceType, name: str, configs: Mapping[str, str]
) -> list[RecordAndVersion]:
    return [
        (ConfigRecord(resource_type=kind, resource_name=name, name=key, value=value), 0)
        for key, value in configs.items()
    ]


def _partition_records(
    topic_id: bytes, count: int, replica_count: int, broker_ids: Sequence[int], random: Random
) -> list[RecordAndVersion]:
    version = LATEST_PRODUCTION_METADATA_VERSION.partition_record_version
    records: list[RecordAndVersion] = []
    for index in range(count):
        replicas = random.sample(broker_ids, replica_count)
        record = PartitionRecord(
            partition_id=index,
            topic_id=topic_id,
            replicas=replicas,
            isr=replicas,
            leader=replicas[0],
            leader_epoch=0,
            partition_epoch=0,
            directories=[directory_id(one, random.randrange(len(ROOTS))) for one in replicas],
        )
        records.append((record, version))
    return records
