"""The authorizer's log: a line for each decision, as Kafka's StandardAuthorizer writes them.

Refusals are logged at INFO, permissions at DEBUG. A decision that grants and refuses nothing by
itself is logged by Kafka at TRACE, and is not logged here.
"""

import logging
from collections.abc import Iterable
from typing import Final, NamedTuple

from kvorum.metadata.acl_codes import (
    WILDCARD,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.acls_image import AccessControlEntry

SUPER_USER: Final = "SuperUser"
"""The rule that allows everything to super users."""
LOGGER_NAME: Final = "kafka.authorizer.logger"
"""The name of the log, which is that of Kafka's."""
_log: Final = logging.getLogger(LOGGER_NAME)


class Decision(NamedTuple):
    """A question, and whether the authorizer allowed it.

    `references` counts how often the request names the resource. `request` is the API's name.
    """

    principal: str
    host: str
    request: str
    operation: AclOperation
    kind: AclResourceType
    name: str
    references: int
    is_allowed: bool

    def line(self, rule: str) -> str:
        """Return the decision by a rule in Kafka's words; unprintable characters are escaped."""
        kind = "".join(word.capitalize() for word in self.kind.name.split("_"))
        return _printable(
            f"Principal = {self.principal} is {'Allowed' if self.is_allowed else 'Denied'}"
            f" operation = {self.operation.name} from host = {self.host}"
            f" on resource = {kind}:{PatternType.LITERAL.name}:{self.name}"
            f" for request = {self.request} with resourceRefCount = {self.references}"
            f" based on rule {rule}"
        )


def is_logged(*, is_allowed: bool) -> bool:
    """Return whether permissions, or refusals, are logged at the log's level."""
    return _log.isEnabledFor(logging.DEBUG if is_allowed else logging.INFO)


def log_decision(decision: Decision, rule: str) -> None:
    """Log a decision by a rule."""
    level = logging.DEBUG if decision.is_allowed else logging.INFO
    _log.log(level, "%s", decision.line(rule))


def rule_of(applying: Iterable[AccessControlEntry], *, is_allowed: bool) -> str:
    """Return the rule that decided where these entries apply.

    Of several entries Kafka names the last one that allows, or the first that denies; those of all
    resources come last, and those of longer names first.
    """
    permission = PermissionType.ALLOW if is_allowed else PermissionType.DENY
    deciding = sorted(
        (entry for entry in applying if entry.permission_type == permission), key=_place
    )
    if not deciding:
        return "DefaultAllow" if is_allowed else "DefaultDeny"
    return f"MatchingAcl(acl={_text(deciding[-1] if is_allowed else deciding[0])})"


def _place(entry: AccessControlEntry) -> tuple[bool, int, int, int, str, str]:
    return (
        entry.resource_name == WILDCARD,
        -len(entry.resource_name),
        entry.pattern_type,
        entry.operation,
        entry.principal,
        entry.host,
    )


def _text(entry: AccessControlEntry) -> str:
    """Return an entry as Kafka writes one."""
    return (
        f"StandardAcl[resourceType={AclResourceType(entry.resource_type).name},"
        f" resourceName={entry.resource_name},"
        f" patternType={PatternType(entry.pattern_type).name},"
        f" principal={entry.principal}, host={entry.host},"
        f" operation={AclOperation(entry.operation).name},"
        f" permissionType={PermissionType(entry.permission_type).name}]"
    )


def _printable(text: str) -> str:
    """Return a text that is one line, whatever names clients have chosen."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode() for each in text
    )
