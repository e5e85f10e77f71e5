"""Filters of DescribeAcls and DeleteAcls over access control entries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kvorum.metadata.acl_codes import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.acls_image import AccessControlEntry, AclsImage


class FilterFields(Protocol):
    """The filter fields of both requests; None matches anything."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


@dataclass(frozen=True, slots=True)
class AclFilter:
    """A filter of entries; ANY and None match everything.

    The pattern type MATCH, with a name, matches every entry that applies to a resource of that
    name.
    """

    resource_type: AclResourceType
    name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: PermissionType

    @classmethod
    def of(cls, fields: FilterFields) -> AclFilter:
        """Return the filter of a request; unknown codes become UNKNOWN."""
        return cls(
            AclResourceType(fields.resource_type_filter),
            fields.resource_name_filter,
            PatternType(fields.pattern_type_filter),
            fields.principal_filter,
            fields.host_filter,
            AclOperation(fields.operation),
            PermissionType(fields.permission_type),
        )

    @property
    def has_unknown_pattern(self) -> bool:
        """Whether the filter's resource type or pattern type is unknown."""
        return not self.resource_type or not self.pattern_type

    @property
    def has_unknown_entry(self) -> bool:
        """Whether the filter's operation or permission type is unknown."""
        return not self.operation or not self.permission_type

    def matches(self, entry: AccessControlEntry) -> bool:
        """Return whether the filter matches `entry`."""
        return (
            self._matches_pattern(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (PermissionType.ANY, entry.permission_type)
        )

    def _matches_pattern(self, entry: AccessControlEntry) -> bool:
        if self.resource_type not in (AclResourceType.ANY, entry.resource_type):
            return False
        if self.pattern_type == PatternType.MATCH:
            return self.name is None or _holds_for(entry, self.name)
        if self.pattern_type not in (PatternType.ANY, entry.pattern_type):
            return False
        return self.name in (None, entry.resource_name)


def matching_entries(
    acls: AclsImage, wanted: AclFilter
) -> Iterator[tuple[bytes, AccessControlEntry]]:
    """Yield the ids and entries that `wanted` matches, in no particular order."""
    for entry_id, entry in acls.entries.items():
        if wanted.matches(entry):
            yield entry_id, entry


def _holds_for(entry: AccessControlEntry, name: str) -> bool:
    if entry.pattern_type == PatternType.PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name in (name, WILDCARD)
