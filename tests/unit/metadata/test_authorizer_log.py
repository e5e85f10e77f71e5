"""The authorizer's log: the rule, the level and the words of each decision."""

import logging
from dataclasses import replace
from typing import Final

import pytest

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.metadata.acls_image import (
    AccessControlEntry,
    AclsImage,
    acl_record,
    replay_access_control_entry,
)
from kvorum.metadata.authorizer_log import LOGGER_NAME
from kvorum.metadata.standard_authorizer import UNRESTRICTED, Access, AuthorizerRules, Principal

ALICE: Final = Principal("User", "alice")
RULES: Final = AuthorizerRules()
TOPIC: Final = AclResourceType.TOPIC.value
READ_RULE: Final = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=t, patternType=PREFIXED,"
    " principal=User:alice, host=*, operation=READ, permissionType=ALLOW])"
)
DENIED_RULE: Final = (
    "MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=*, patternType=LITERAL,"
    " principal=User:*, host=h, operation=ALL, permissionType=DENY])"
)
READS: Final = AccessControlEntry(
    TOPIC, "t", PatternType.PREFIXED, "User:alice", "*", AclOperation.READ, PermissionType.ALLOW
)
READS_MORE: Final = replace(READS, resource_name="top")
DENIED: Final = AccessControlEntry(
    TOPIC, "*", PatternType.LITERAL, "User:*", "h", AclOperation.ALL, PermissionType.DENY
)
DENIED_ALONE: Final = replace(DENIED, principal="User:alice")


def access_of(*entries: AccessControlEntry, rules: AuthorizerRules = RULES) -> Access:
    """The access of alice, who asks by Metadata."""
    image = AclsImage()
    for number, entry in enumerate(entries):
        record = acl_record(number.to_bytes(16, "big"), entry)
        image = replay_access_control_entry(image, record)
    return Access(rules, image, ALICE, "h", "Metadata")


@pytest.mark.parametrize(
    ("access", "level", "rule"),
    [
        (access_of(), logging.INFO, "DefaultDeny"),
        (
            access_of(rules=AuthorizerRules(allows_without_entries=True)),
            logging.DEBUG,
            "DefaultAllow",
        ),
        (
            access_of(DENIED, rules=AuthorizerRules(frozenset({"User:alice"}))),
            logging.DEBUG,
            "SuperUser",
        ),
        (access_of(READS, READS_MORE), logging.DEBUG, READ_RULE),
        (access_of(READS, DENIED_ALONE, DENIED), logging.INFO, DENIED_RULE),
    ],
    ids=["default deny", "default allow", "super user", "allowed", "denied"],
)
def test_each_rule_has_its_line_and_its_level(
    access: Access, level: int, rule: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER_NAME)
    access.allows_on_topic(AclOperation.DESCRIBE, "topic", references=3)
    verdict = "Denied" if level == logging.INFO else "Allowed"
    line = (
        f"Principal = User:alice is {verdict} operation = DESCRIBE from host = h"
        " on resource = Topic:LITERAL:topic for request = Metadata"
        f" with resourceRefCount = 3 based on rule {rule}"
    )
    assert caplog.record_tuples == [(LOGGER_NAME, level, line)]


def test_permissions_are_logged_at_the_level_of_debugging_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger=LOGGER_NAME)
    access = access_of(READS)
    assert access.allows_on_topic(AclOperation.READ, "t")
    assert not caplog.records
    assert not access.allows_on_topic(AclOperation.WRITE, "t")
    assert len(caplog.records) == 1


def test_what_refuses_nothing_by_itself_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER_NAME)
    access = access_of(READS)
    assert not access.allows_on_cluster(AclOperation.CREATE, logs_denied=False)
    assert access.operations_on_topic("t") == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    assert access.allows_somewhere(AclOperation.READ, AclResourceType.TOPIC)
    assert UNRESTRICTED.allows(AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME)
    assert not caplog.records


def test_a_name_that_is_given_twice_is_asked_about_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER_NAME)
    access_of().allowed_topics(AclOperation.READ, ["a", "b", "a"])
    counts = [line.partition("resourceRefCount = ")[2].split()[0] for line in caplog.messages]
    assert counts == ["2", "1"]


def test_a_name_does_not_begin_another_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger=LOGGER_NAME)
    access_of().allows(AclOperation.READ, AclResourceType.TRANSACTIONAL_ID, "a\nb\u2028é")
    (line,) = caplog.messages
    assert " on resource = TransactionalId:LITERAL:a\\nb\\u2028é for request = " in line
