"""Access control entries, folded from their records."""

from __future__ import annotations

from dataclasses import dataclass, field

from immutables import Map

from kvorum.metadata.errors import ReplayError
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.uuid_text import uuid_to_text


@dataclass(frozen=True, slots=True, order=True)
class AccessControlEntry:
    """Who may do what from where; the numbers are Kafka's codes."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class AclsImage:
    """Every access control entry by its id."""

    entries: Map[bytes, AccessControlEntry] = field(default_factory=Map[bytes, AccessControlEntry])


def replay_access_control_entry(image: AclsImage, record: AccessControlEntryRecord) -> AclsImage:
    """Return `image` with one entry added."""
    entry = AccessControlEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
    return AclsImage(image.entries.set(record.id, entry))


def replay_remove_access_control_entry(image: AclsImage, entry_id: bytes) -> AclsImage:
    """Return `image` without one entry."""
    if entry_id not in image.entries:
        raise ReplayError(f"no access control entry with id {uuid_to_text(entry_id)}")
    return AclsImage(image.entries.delete(entry_id))
