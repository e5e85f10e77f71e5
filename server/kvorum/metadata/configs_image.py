"""Dynamic configuration and client quotas, folded from ConfigRecords and ClientQuotaRecords."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum, unique
from typing import Final

from immutables import Map

from kvorum.metadata.config_definitions import CLIENT_METRICS_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity type and name, sorted by type; a name of None is the type's default."""

ConfigResource = tuple[int, str]
"""Resource type and name; the empty broker name means all brokers of the cluster."""

_NO_VALUES: Final = Map[str, str]()
"""The values of a resource that has none."""


@unique
class ResourceType(IntEnum):
    """Types of resources that have configurations, with Kafka's numbers."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


CLUSTER_RESOURCE: ConfigResource = (ResourceType.BROKER, "")


@dataclass(frozen=True, slots=True)
class ConfigsImage:
    """The dynamic values of each resource that has such values."""

    resources: Map[ConfigResource, Map[str, str]] = field(
        default_factory=Map[ConfigResource, Map[str, str]]
    )

    def of(self, resource_type: int, name: str) -> Map[str, str]:
        """Return the dynamic values of a resource, an empty map where it has none."""
        return self.resources.get((resource_type, name), _NO_VALUES)

    def of_cluster(self) -> Map[str, str]:
        """Return the dynamic values that hold for all brokers."""
        return self.of(*CLUSTER_RESOURCE)

    def of_topic(self, name: str) -> Map[str, str]:
        """Return the dynamic values of a topic."""
        return self.of(ResourceType.TOPIC, name)

    def without(self, resource_type: int, name: str) -> ConfigsImage:
        """Return the image without the values of one resource."""
        resource = (int(resource_type), name)
        if resource not in self.resources:
            return self
        return ConfigsImage(self.resources.delete(resource))


def replay_config(image: ConfigsImage, record: ConfigRecord) -> ConfigsImage:
    """Return `image` with one value set or, where the record has none, removed.

    A key that the resource's type does not have is skipped, as by every Kafka node: another
    release, which has the key, wrote the record.
    """
    resource = (record.resource_type, record.resource_name)
    if not is_supported(record.resource_type, record.name):
        return image
    current = image.of(*resource)
    if record.value is not None:
        return ConfigsImage(image.resources.set(resource, current.set(record.name, record.value)))
    if record.name not in current:
        return image
    left = current.delete(record.name)
    if left:
        return ConfigsImage(image.resources.set(resource, left))
    return ConfigsImage(image.resources.delete(resource))


def is_supported(resource_type: int, name: str) -> bool:
    """Return whether `name` is a key of resources of the type `resource_type`."""
    if resource_type == ResourceType.BROKER:
        return True
    if resource_type == ResourceType.TOPIC:
        return name in TOPIC_CONFIGS
    if resource_type == ResourceType.CLIENT_METRICS:
        return name in CLIENT_METRICS_CONFIGS
    if resource_type == ResourceType.GROUP:
        return name in GROUP_CONFIGS
    return False


@dataclass(frozen=True, slots=True)
class ClientQuotasImage:
    """The quota values of each entity that has such values."""

    entities: Map[QuotaEntity, Map[str, float]] = field(
        default_factory=Map[QuotaEntity, Map[str, float]]
    )


def replay_client_quota(image: ClientQuotasImage, record: ClientQuotaRecord) -> ClientQuotasImage:
    """Return `image` with one value of one entity set or removed."""
    entity = tuple(sorted({part.entity_type: part.entity_name for part in record.entity}.items()))
    values = image.entities.get(entity)
    if not record.remove:
        changed = (Map[str, float]() if values is None else values).set(record.key, record.value)
        return ClientQuotasImage(image.entities.set(entity, changed))
    if values is None or record.key not in values:
        return image
    left = values.delete(record.key)
    if left:
        return ClientQuotasImage(image.entities.set(entity, left))
    return ClientQuotasImage(image.entities.delete(entity))
