"""Access control entries, folded from their records."""

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from immutables import Map

from kvorum.metadata.acl_codes import PatternType
from kvorum.metadata.errors import ReplayError
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.uuid_text import uuid_to_text


@dataclass(frozen=True, slots=True, order=True)
class AccessControlEntry:
    """An access control entry; the numbers are Kafka's codes."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


class ResourcePattern(NamedTuple):
    """The resources that an entry applies to."""

    resource_type: int
    pattern_type: int
    name: str


EntriesByPrincipal: TypeAlias = Map[str, tuple[AccessControlEntry, ...]]
"""The entries of one resource pattern."""


@dataclass(frozen=True, slots=True)
class AclsImage:
    """Every access control entry by its id, with an index by resource pattern.

    `patterns` contains the same entries by pattern and principal. `prefix_lengths` counts the
    prefixed patterns by resource type and length of the prefix: a lookup tries only these lengths
    of a resource's name.
    """

    entries: Map[bytes, AccessControlEntry] = field(default_factory=Map[bytes, AccessControlEntry])
    patterns: Map[ResourcePattern, EntriesByPrincipal] = field(
        default_factory=Map[ResourcePattern, EntriesByPrincipal], compare=False, repr=False
    )
    prefix_lengths: Map[tuple[int, int], int] = field(
        default_factory=Map[tuple[int, int], int], compare=False, repr=False
    )

    def __contains__(self, entry: AccessControlEntry) -> bool:
        """Return whether an entry equal to `entry` exists, whatever its id is."""
        of_pattern = self.patterns.get(_pattern_of(entry))
        return of_pattern is not None and entry in of_pattern.get(entry.principal, ())


def acl_record(entry_id: bytes, entry: AccessControlEntry) -> AccessControlEntryRecord:
    """Return the record that holds an entry under an id."""
    return AccessControlEntryRecord(
        id=entry_id,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )


def _remove(image: AclsImage, entry_id: bytes) -> AclsImage:
    entry = image.entries[entry_id]
    pattern = _pattern_of(entry)
    of_pattern = image.patterns[pattern]
    left = list(of_pattern[entry.principal])
    left.remove(entry)
    if left:
        of_pattern = of_pattern.set(entry.principal, tuple(left))
    else:
        of_pattern = of_pattern.delete(entry.principal)
    entries = image.entries.delete(entry_id)
    if of_pattern:
        return AclsImage(entries, image.patterns.set(pattern, of_pattern), image.prefix_lengths)
    lengths = _counted(image.prefix_lengths, pattern, step=-1)
    return AclsImage(entries, image.patterns.delete(pattern), lengths)


def _pattern_of(entry: AccessControlEntry) -> ResourcePattern:
    return ResourcePattern(entry.resource_type, entry.pattern_type, entry.resource_name)


def _counted(
    lengths: Map[tuple[int, int], int], pattern: ResourcePattern, *, step: int
) -> Map[tuple[int, int], int]:
    if pattern.pattern_type != PatternType.PREFIXED:
        return lengths
    key = (pattern.resource_type, len(pattern.name))
    count = lengths.get(key, 0) + step
    return lengths.set(key, count) if count else lengths.delete(key)


def replay_access_control_entry(image: AclsImage, record: AccessControlEntryRecord) -> AclsImage:
    """Return `image` with one entry added, in place of any earlier entry with the same id."""
    entry = AccessControlEntry(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
    if record.id in image.entries:
        image = _remove(image, record.id)
    pattern = _pattern_of(entry)
    of_pattern = image.patterns.get(pattern)
    lengths = image.prefix_lengths
    if of_pattern is None:
        of_pattern = EntriesByPrincipal()
        lengths = _counted(lengths, pattern, step=1)
    same = of_pattern.get(entry.principal, ())
    of_pattern = of_pattern.set(entry.principal, (*same, entry))
    return AclsImage(
        image.entries.set(record.id, entry), image.patterns.set(pattern, of_pattern), lengths
    )


def replay_remove_access_control_entry(image: AclsImage, entry_id: bytes) -> AclsImage:
    """Return `image` without one entry."""
    if entry_id not in image.entries:
        raise ReplayError(f"no access control entry with id {uuid_to_text(entry_id)}")
    return _remove(image, entry_id)
