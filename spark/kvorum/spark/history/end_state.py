"""The state at the end of the records that were folded, as rows."""

from collections.abc import Iterator

from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.topics_image import TopicImage
from kvorum.spark.history.columns import VoterColumn
from kvorum.spark.history.tables import (
    BrokerRow,
    ConfigRow,
    FeatureRow,
    PartitionRow,
    QuotaRow,
    StateRow,
    TopicRow,
)
from kvorum.spark.history.value_columns import (
    acl_row,
    endpoint_columns,
    entity_columns,
    feature_columns,
    is_sensitive,
    log_dir_texts,
    state_of,
)
from kvorum.wire.uuid_text import uuid_to_text


def end_state(image: MetadataImage, voters: tuple[VoterColumn, ...]) -> Iterator[StateRow]:
    """Yield the rows of all tables of the state, table by table, each in order of its key."""
    topics = image.topics.sorted_topics()
    for topic in topics:
        yield TopicRow(topic.name, uuid_to_text(topic.id), len(topic.partitions))
    for topic in topics:
        for index, partition in topic.sorted_partitions():
            yield _partition_row(topic, index, partition)
    yield from _brokers(image)
    yield from _configs(image)
    for entry_id in sorted(image.acls.entries):
        yield acl_row(entry_id, image.acls.entries[entry_id])
    yield from _quotas(image)
    for name, level in image.features.all_levels().items():
        yield FeatureRow(name, level)
    yield from voters


def _partition_row(topic: TopicImage, index: int, partition: PartitionRegistration) -> PartitionRow:
    return PartitionRow(
        topic_name=topic.name,
        topic_id=uuid_to_text(topic.id),
        partition_id=index,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
        directories=log_dir_texts(partition.directories),
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
    )


def _brokers(image: MetadataImage) -> Iterator[BrokerRow]:
    for broker in image.cluster.sorted_brokers():
        cordoned = broker.cordoned_directories
        yield BrokerRow(
            broker_id=broker.id,
            incarnation_id=uuid_to_text(broker.incarnation_id),
            broker_epoch=broker.epoch,
            state=state_of(broker),
            rack=broker.rack,
            endpoints=endpoint_columns(broker.listeners),
            log_dirs=log_dir_texts(broker.directories),
            cordoned_log_dirs=None if cordoned is None else log_dir_texts(cordoned),
            features=feature_columns(broker.supported_features),
        )


def _configs(image: MetadataImage) -> Iterator[ConfigRow]:
    for kind, resource_name in sorted(image.configs.resources):
        for name, value in sorted(image.configs.of(kind, resource_name).items()):
            yield ConfigRow(
                resource_type=ResourceType(kind).name,
                resource_name=resource_name,
                name=name,
                value=value,
                is_sensitive=is_sensitive(kind, name),
            )


def _quotas(image: MetadataImage) -> Iterator[QuotaRow]:
    rows = [
        QuotaRow(entity_columns(entity), key, value)
        for entity, values in image.client_quotas.entities.items()
        for key, value in values.items()
    ]
    # A default has no name; the flag makes None and texts comparable.
    rows.sort(
        key=lambda row: (
            [(kind, name is not None, name or "") for kind, name in row.entity],
            row.key,
        )
    )
    yield from rows
