"""Client quotas, folded from ClientQuotaRecords."""

from dataclasses import dataclass, field
from typing import Final

from immutables import Map

from kvorum.wire.messages.client_quota_record import ClientQuotaRecord

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity type and name, sorted by type; a name of None is the type's default."""


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
