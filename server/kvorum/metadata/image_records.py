"""The records of a snapshot of an image, in the order and the versions that Kafka writes."""

from collections.abc import Iterator

from kvorum.metadata import directory_ids
from kvorum.metadata.acls_image import AclsImage, acl_record
from kvorum.metadata.cluster_image import (
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
    write_endpoints,
    write_features,
)
from kvorum.metadata.configs_image import ClientQuotasImage, ConfigsImage
from kvorum.metadata.credentials_image import DelegationTokensImage, ScramImage
from kvorum.metadata.errors import ReplayError, UnwritableMetadataError
from kvorum.metadata.features import FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord


def image_records(image: MetadataImage) -> Iterator[RecordAndVersion]:
    """Yield the records that fold into `image`, in the form of a snapshot.

    Where Kafka uses the iteration order of its hash maps, records are sorted by name or id here, so
    that an image always gives the same snapshot. Raises `ReplayError` inside a transaction or
    without a metadata.version, `UnwritableMetadataError` where the level has no record for the
    state.
    """
    if image.transaction is not None:
        raise ReplayError("no snapshot can be taken inside a metadata transaction")
    version = image.metadata_version
    is_elr_enabled = image.features.is_elr_enabled
    yield from _features(image.features)
    yield from _cluster(image.cluster, version)
    yield from _topics(image.topics, version, is_elr_enabled=is_elr_enabled)
    yield from _configs(image.configs)
    yield from _client_quotas(image.client_quotas)
    if image.next_producer_id >= 0:
        yield ProducerIdsRecord(-1, -1, next_producer_id=image.next_producer_id), 0
    yield from _acls(image.acls)
    yield from _scram(image.scram, version)
    yield from _delegation_tokens(image.delegation_tokens, version)


def _features(image: FeaturesImage) -> Iterator[RecordAndVersion]:
    for name, level in image.all_levels().items():
        yield FeatureLevelRecord(name=name, feature_level=level), 0


def _cluster(image: ClusterImage, version: MetadataVersion) -> Iterator[RecordAndVersion]:
    for broker in image.sorted_brokers():
        yield broker_record(broker, version), version.register_broker_record_version
    if image.controllers and not version.supports_controller_registration:
        raise _unwritable(version, "controller registration data")
    for controller_id in sorted(image.controllers):
        yield controller_record(image.controllers[controller_id]), 0


def broker_record(broker: BrokerRegistration, version: MetadataVersion) -> RegisterBrokerRecord:
    """Return the record that registers `broker` in its current state."""
    if broker.directories and not version.supports_directory_assignment:
        raise _unwritable(version, "the online log directories of one or more brokers")
    cordoned = broker.cordoned_directories
    if cordoned is not None and not version.supports_cordoned_log_dirs:
        raise _unwritable(version, "the cordoned log directories of one or more brokers")
    return RegisterBrokerRecord(
        broker_id=broker.id,
        is_migrating_zk_broker=broker.is_migrating_zk_broker,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.epoch,
        end_points=write_endpoints(broker.listeners, RegisterBrokerRecord.BrokerEndpoint),
        features=write_features(
            sorted(broker.supported_features.items()), RegisterBrokerRecord.BrokerFeature
        ),
        rack=broker.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.is_in_controlled_shutdown,
        log_dirs=list(broker.directories),
        cordoned_log_dirs=None if cordoned is None else list(cordoned),
    )


def controller_record(controller: ControllerRegistration) -> RegisterControllerRecord:
    """Return the record that registers `controller`."""
    return RegisterControllerRecord(
        controller_id=controller.id,
        incarnation_id=controller.incarnation_id,
        zk_migration_ready=controller.is_zk_migration_ready,
        end_points=write_endpoints(
            controller.listeners, RegisterControllerRecord.ControllerEndpoint
        ),
        features=write_features(
            sorted(controller.supported_features.items()),
            RegisterControllerRecord.ControllerFeature,
        ),
    )


def _topics(
    image: TopicsImage, version: MetadataVersion, *, is_elr_enabled: bool
) -> Iterator[RecordAndVersion]:
    for topic in image.sorted_topics():
        yield TopicRecord(name=topic.name, topic_id=topic.id), 0
        for index, partition in topic.sorted_partitions():
            yield (
                partition_record(
                    partition,
                    topic_id=topic.id,
                    index=index,
                    version=version,
                    is_elr_enabled=is_elr_enabled,
                ),
                version.partition_record_version,
            )


def partition_record(
    partition: PartitionRegistration,
    *,
    topic_id: bytes,
    index: int,
    version: MetadataVersion,
    is_elr_enabled: bool,
) -> PartitionRecord:
    """Return the record with the complete state of `partition`."""
    record = PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        removing_replicas=list(partition.removing_replicas),
        adding_replicas=list(partition.adding_replicas),
        leader=partition.leader,
        leader_recovery_state=partition.leader_recovery_state,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if is_elr_enabled:
        record.eligible_leader_replicas = list(partition.elr) or None
        record.last_known_elr = list(partition.last_known_elr) or None
    if version.supports_directory_assignment:
        record.directories = list(partition.directories)
    elif any(directory != directory_ids.MIGRATING for directory in partition.directories):
        raise _unwritable(version, "the directory assignment state of one or more replicas")
    return record


def _configs(image: ConfigsImage) -> Iterator[RecordAndVersion]:
    for resource in sorted(image.resources):
        for name, value in sorted(image.resources[resource].items()):
            yield ConfigRecord(*resource, name, value), 0


def _client_quotas(image: ClientQuotasImage) -> Iterator[RecordAndVersion]:
    # A default has no name; the flag makes None and texts comparable.
    entities = sorted(
        image.entities,
        key=lambda entity: [(kind, name is not None, name or "") for kind, name in entity],
    )
    for entity in entities:
        parts = [
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ]
        for key, value in sorted(image.entities[entity].items()):
            yield ClientQuotaRecord(entity=parts, key=key, value=value, remove=False), 0


def _acls(image: AclsImage) -> Iterator[RecordAndVersion]:
    for entry_id in sorted(image.entries):
        yield acl_record(entry_id, image.entries[entry_id]), 0


def _scram(image: ScramImage, version: MetadataVersion) -> Iterator[RecordAndVersion]:
    if image.credentials and not version.supports_scram:
        raise _unwritable(version, "SCRAM credentials")
    for mechanism, name in sorted(image.credentials):
        credential = image.credentials[mechanism, name]
        yield (
            UserScramCredentialRecord(
                name=name,
                mechanism=mechanism,
                salt=credential.salt,
                stored_key=credential.stored_key,
                server_key=credential.server_key,
                iterations=credential.iterations,
            ),
            0,
        )


def _delegation_tokens(
    image: DelegationTokensImage, version: MetadataVersion
) -> Iterator[RecordAndVersion]:
    if image.tokens and not version.supports_delegation_tokens:
        raise _unwritable(version, "delegation tokens")
    for token_id in sorted(image.tokens):
        token = image.tokens[token_id]
        yield (
            DelegationTokenRecord(
                owner=token.owner,
                requester=token.requester,
                renewers=list(token.renewers),
                issue_timestamp=token.issue_timestamp_ms,
                max_timestamp=token.max_timestamp_ms,
                expiration_timestamp=token.expiration_timestamp_ms,
                token_id=token_id,
            ),
            0,
        )


def _unwritable(version: MetadataVersion, what: str) -> UnwritableMetadataError:
    return UnwritableMetadataError(f"metadata.version {version.text} has no records for {what}")
