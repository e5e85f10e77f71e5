"""Authorization: the decisions of Kafka's StandardAuthorizer.

An operation on a resource is allowed if no entry denies it and at least one allows it. If no entry
of any principal applies to the resource, the configuration decides. Super users may do everything.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    IMPLYING,
    SUPPORTED_OPERATIONS,
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.acls_image import (
    AccessControlEntry,
    AclsImage,
    EntriesByPrincipal,
    ResourcePattern,
)
from kvorum.metadata.api import RequestError
from kvorum.metadata.authorizer_log import SUPER_USER, Decision, is_logged, log_decision, rule_of
from kvorum.metadata.cidr import is_in_range
from kvorum.metadata.configs_image import ResourceType
from kvorum.wire.error_codes import ErrorCode

USER_TYPE: Final = "User"
EVERYBODY: Final = "User:*"
"""The principal of entries that apply to every user."""
HOSTS_MAX: Final = 1024
"""The number of addresses whose form is remembered: each request asks for that of its client."""
_OF_CLUSTER: Final = (AclResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_NEEDED: Final[Mapping[int, tuple[AclResourceType, ErrorCode]]] = MappingProxyType(
    {
        ResourceType.TOPIC: (AclResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ResourceType.GROUP: (AclResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ResourceType.BROKER: _OF_CLUSTER,
        ResourceType.BROKER_LOGGER: _OF_CLUSTER,
        ResourceType.CLIENT_METRICS: _OF_CLUSTER,
    }
)
"""By type of resource: the type that the permission is checked on, and the code of a refusal."""


class Principal(NamedTuple):
    """A user by type and name.

    `is_token_authenticated` reports how the user was authenticated; it does not change the
    identity.
    """

    type: str
    name: str
    is_token_authenticated: bool = False

    @property
    def text(self) -> str:
        """The principal as access rules and records name it: ``type:name``."""
        return f"{self.type}:{self.name}"

    def is_same_user(self, other: Principal) -> bool:
        """Return whether both are the same user, however each was authenticated."""
        return (self.type, self.name) == (other.type, other.name)

    @classmethod
    def from_text(cls, text: str) -> Principal:
        """Return the principal that ``type:name`` names; `ValueError` without a colon."""
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(
                f"expected a string in format principalType:principalName but got {text}"
            )
        return cls(kind, name)


ANONYMOUS: Final = Principal(USER_TYPE, "ANONYMOUS")
"""The principal of every client on a PLAINTEXT listener."""


class AuthorizerRules(NamedTuple):
    """The authorizer's settings: super users as texts, and the decision where no entry applies."""

    super_users: frozenset[str] = frozenset()
    allows_without_entries: bool = False


class Access(NamedTuple):
    """The permissions of one principal at one host, by one version of the entries.

    Without an authorizer `rules` is None, and everything is allowed. `acls` is None until the
    node has loaded the entries; until then only super users are authorized. `request` is the API
    that asks, by its name in the log.
    """

    rules: AuthorizerRules | None
    acls: AclsImage | None
    principal: Principal
    host: str
    request: str = ""

    @property
    def is_restricted(self) -> bool:
        """Whether there is an authorizer."""
        return self.rules is not None

    def allows(
        self,
        operation: AclOperation,
        kind: AclResourceType,
        name: str,
        *,
        references: int = 1,
        logs_denied: bool = True,
    ) -> bool:
        """Return whether `operation` on the resource is allowed, and log the decision.

        `references` counts how often the request names the resource. `logs_denied` is false where a
        refusal by itself does not refuse the client anything.

        Raises `RequestError` UNKNOWN_SERVER_ERROR while the entries are not loaded.
        """
        if self.rules is None:
            return True
        is_allowed = self._permits(operation, kind, name)
        if (is_allowed or logs_denied) and is_logged(is_allowed=is_allowed):
            decision = Decision(
                principal=self.principal.text,
                host=self.host,
                request=self.request,
                operation=operation,
                kind=kind,
                name=name,
                references=references,
                is_allowed=is_allowed,
            )
            log_decision(decision, self._rule(decision))
        return is_allowed

    def _permits(self, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
        """Return whether `operation` on the resource is allowed; see `allows`."""
        if self.rules is None or self.principal.text in self.rules.super_users:
            return True
        if self.acls is None:
            raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR)
        found = [entries for entries in _about(self.acls, kind, name) if entries is not None]
        permissions = {
            entry.permission_type
            for entries in found
            for entry in self._applying(entries)
            if _covers(entry, operation)
        }
        if not permissions:
            return self.rules.allows_without_entries and not found
        return permissions == {PermissionType.ALLOW}

    def _rule(self, decision: Decision) -> str:
        """Return the rule by which a decision was made, as the log names it."""
        assert self.rules is not None
        if self.acls is None or decision.principal in self.rules.super_users:
            return SUPER_USER
        applying = (
            entry
            for entries in _about(self.acls, decision.kind, decision.name)
            if entries is not None
            for entry in self._applying(entries)
            if _covers(entry, decision.operation)
        )
        return rule_of(applying, is_allowed=decision.is_allowed)

    def allows_on_cluster(self, operation: AclOperation, *, logs_denied: bool = True) -> bool:
        """Return whether `operation` on the cluster is allowed; see `allows`."""
        kind = AclResourceType.CLUSTER
        return self.allows(operation, kind, CLUSTER_NAME, logs_denied=logs_denied)

    def require_on_cluster(self, operation: AclOperation, *, request: str) -> None:
        """Raise `RequestError` CLUSTER_AUTHORIZATION_FAILED where `operation` is not allowed."""
        if not self.allows_on_cluster(operation):
            raise RequestError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"Request {request} needs {operation.name} permission.",
            )

    def allows_on_topic(
        self,
        operation: AclOperation,
        name: str,
        *,
        references: int = 1,
        logs_denied: bool = True,
    ) -> bool:
        """Return whether `operation` on a topic is allowed; see `allows`."""
        kind = AclResourceType.TOPIC
        return self.allows(operation, kind, name, references=references, logs_denied=logs_denied)

    def allowed_topics(
        self, operation: AclOperation, names: Iterable[str], *, logs_denied: bool = True
    ) -> frozenset[str]:
        """Return those of `names` on which `operation` is allowed; see `allows`."""
        return frozenset(
            name
            for name, references in Counter(names).items()
            if self.allows_on_topic(operation, name, references=references, logs_denied=logs_denied)
        )

    def operations_on_topic(self, name: str) -> int:
        """Return the bit field of all operations that are allowed on a topic."""
        return self._operations(AclResourceType.TOPIC, name)

    def operations_on_group(self, name: str) -> int:
        """Return the bit field of all operations that are allowed on a group."""
        return self._operations(AclResourceType.GROUP, name)

    def allows_on_group(
        self, operation: AclOperation, name: str, *, logs_denied: bool = True
    ) -> bool:
        """Return whether `operation` on the group is allowed; see `allows`."""
        return self.allows(operation, AclResourceType.GROUP, name, logs_denied=logs_denied)

    def operations_on_cluster(self) -> int:
        """Return the bit field of all operations on the cluster; 0 without DESCRIBE on it."""
        if not self.allows_on_cluster(AclOperation.DESCRIBE):
            return 0
        return self._operations(AclResourceType.CLUSTER, CLUSTER_NAME)

    def _operations(self, kind: AclResourceType, name: str) -> int:
        operations = SUPPORTED_OPERATIONS[kind]
        if self.rules is None:
            return _bits(operations)
        return _bits(operation for operation in operations if self._permits(operation, kind, name))

    def allows_somewhere(self, operation: AclOperation, kind: AclResourceType) -> bool:
        """Library for users: return whether `operation` is allowed on any resource of a type.

        As in Kafka, no operation implies another one here.
        """
        if self.allows(operation, kind, "hardcode", references=0, logs_denied=False):
            return True
        assert self.acls is not None
        applying = [
            (pattern, entry)
            for pattern, entries in self.acls.patterns.items()
            if pattern.resource_type == kind
            for entry in self._applying(entries)
            if entry.operation in (operation, AclOperation.ALL)
        ]
        denied = {p for p, entry in applying if entry.permission_type == PermissionType.DENY}
        allowed = {p for p, entry in applying if entry.permission_type == PermissionType.ALLOW}
        everything = ResourcePattern(kind, PatternType.LITERAL, WILDCARD)
        if everything in denied:
            return False
        return everything in allowed or any(not _is_overruled(p, denied) for p in allowed)

    def _applying(self, entries: EntriesByPrincipal) -> Iterator[AccessControlEntry]:
        """Yield the entries that apply to this principal at this host."""
        names = {EVERYBODY}
        if ":" not in self.principal.type:
            names.add(self.principal.text)
        for name in names:
            for entry in entries.get(name, ()):
                if entry.host in (WILDCARD, self.host) or is_in_range(self.host, entry.host):
                    yield entry


UNRESTRICTED: Final = Access(rules=None, acls=None, principal=ANONYMOUS, host="")
"""The access of every client of a node without an authorizer."""


def _bits(operations: Iterable[AclOperation]) -> int:
    return sum(1 << operation for operation in operations)


def _about(
    acls: AclsImage, kind: AclResourceType, name: str
) -> Iterator[EntriesByPrincipal | None]:
    """Yield the entries of each pattern that matches a resource.

    As in Kafka, the wildcard does not match longer names that begin with an asterisk.
    """
    yield acls.patterns.get(ResourcePattern(kind, PatternType.LITERAL, name))
    if not name.startswith(WILDCARD):
        yield acls.patterns.get(ResourcePattern(kind, PatternType.LITERAL, WILDCARD))
    for of_kind, length in acls.prefix_lengths:
        if of_kind == kind and length <= len(name):
            yield acls.patterns.get(ResourcePattern(kind, PatternType.PREFIXED, name[:length]))


def _covers(entry: AccessControlEntry, operation: AclOperation) -> bool:
    if entry.operation in (AclOperation.ALL, operation):
        return True
    is_implied = entry.operation in IMPLYING.get(operation, ())
    return is_implied and entry.permission_type == PermissionType.ALLOW


def _is_overruled(pattern: ResourcePattern, denied: set[ResourcePattern]) -> bool:
    """Return whether an allowed `pattern` is denied, by itself or by a prefix of its name."""
    if pattern.pattern_type == PatternType.LITERAL and pattern in denied:
        return True
    return any(
        ResourcePattern(pattern.resource_type, PatternType.PREFIXED, pattern.name[:length])
        in denied
        for length in range(1, len(pattern.name) + 1)
    )


@lru_cache(maxsize=HOSTS_MAX)
def host_text(host: str) -> str:
    """Return an address in the form of access control entries: as Java writes it."""
    address, percent, scope = host.partition("%")
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return host
    if isinstance(parsed, ipaddress.IPv4Address):
        return host
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in parsed.exploded.split(":")) + percent + scope


def config_refusal(
    access: Access, operation: AclOperation, *, resource_type: int, name: str
) -> RequestError | None:
    """Return the refusal of `operation` on a resource's configuration, None where it is allowed.

    A type that does not exist is not refused here.
    """
    if resource_type not in _NEEDED:
        return None
    kind, code = _NEEDED[resource_type]
    resource = CLUSTER_NAME if kind == AclResourceType.CLUSTER else name
    if access.allows(operation, kind, resource):
        return None
    return RequestError.with_default_message(code)
