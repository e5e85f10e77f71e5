"""Permissions, against a second reading of the rules that knows no index."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    replay_access_control_entry,
    replay_remove_access_control_entry,
)
from kvorum.metadata.api import RequestError
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.standard_authorizer import (
    UNRESTRICTED,
    Access,
    AuthorizerRules,
    Principal,
    host_text,
)
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord

NAMES = st.sampled_from(["a", "ab", "*", "b", "a*"])
KINDS = st.sampled_from([AclResourceType.TOPIC, AclResourceType.GROUP])
OPERATIONS = st.sampled_from(
    [
        AclOperation.DESCRIBE,
        AclOperation.READ,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.ALL,
        AclOperation.ALTER,
    ]
)
USERS = st.sampled_from(["User:alice", "User:*", "Group:alice"])
HOSTS = st.sampled_from(["*", "10.0.0.1", "10.0.0.2"])
ENTRIES = st.builds(
    AccessControlEntry,
    resource_type=KINDS,
    resource_name=NAMES,
    pattern_type=st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    principal=USERS,
    host=HOSTS,
    operation=OPERATIONS,
    permission_type=st.sampled_from([PermissionType.ALLOW, PermissionType.DENY]),
)
RULES = st.builds(
    AuthorizerRules, st.frozensets(USERS, max_size=1), allows_without_entries=st.booleans()
)
ALICE = Principal("User", "alice")


def image_of(*entries: AccessControlEntry) -> AclsImage:
    image = AclsImage()
    for number, entry in enumerate(entries):
        image = replay_access_control_entry(image, record_of(number, entry))
    return image


def record_of(number: int, entry: AccessControlEntry) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=number.to_bytes(16, "big"), **asdict(entry))


def is_about(entry: AccessControlEntry, kind: AclResourceType, name: str) -> bool:
    """The rule for resources, read slowly."""
    if entry.resource_type != kind:
        return False
    if entry.pattern_type == PatternType.PREFIXED:
        return name.startswith(entry.resource_name)
    is_wildcard = entry.resource_name == "*" and not name.startswith("*")
    return entry.resource_name == name or is_wildcard


def decision(access: Access, operation: AclOperation, kind: AclResourceType, name: str) -> bool:
    """The rules, read slowly."""
    assert access.rules is not None
    assert access.acls is not None
    user = f"{access.principal.type}:{access.principal.name}"
    if user in access.rules.super_users:
        return True
    about = [entry for entry in access.acls.entries.values() if is_about(entry, kind, name)]
    if not about:
        return access.rules.allows_without_entries
    allowing = {AclOperation.ALL, operation}
    denying = frozenset(allowing)
    if operation == AclOperation.DESCRIBE:
        allowing |= {AclOperation.READ, AclOperation.WRITE}
        allowing |= {AclOperation.DELETE, AclOperation.ALTER}
    elif operation == AclOperation.DESCRIBE_CONFIGS:
        allowing |= {AclOperation.ALTER_CONFIGS}
    mine = [e for e in about if e.principal in (user, "User:*") and e.host in ("*", access.host)]
    if any(e.permission_type == PermissionType.DENY and e.operation in denying for e in mine):
        return False
    return any(e.permission_type == PermissionType.ALLOW and e.operation in allowing for e in mine)


@settings(max_examples=1_000)
@given(
    entries=st.lists(ENTRIES, max_size=12),
    rules=RULES,
    user=USERS,
    host=st.sampled_from(["10.0.0.1", "10.0.0.2"]),
    operation=OPERATIONS,
    kind=KINDS,
    name=NAMES,
)
def test_decisions_are_those_of_a_slow_reading(
    *,
    entries: list[AccessControlEntry],
    rules: AuthorizerRules,
    user: str,
    host: str,
    operation: AclOperation,
    kind: AclResourceType,
    name: str,
) -> None:
    access = Access(rules, image_of(*entries), Principal.from_text(user), host)
    assert access.allows(operation, kind, name) == decision(access, operation, kind, name)


@given(st.lists(ENTRIES, max_size=12), st.data())
def test_the_way_to_entries_survives_their_coming_and_going(
    entries: list[AccessControlEntry], data: st.DataObject
) -> None:
    image = image_of(*entries)
    numbers = range(len(entries))
    gone = data.draw(st.sets(st.sampled_from(numbers)) if entries else st.just(set[int]()))
    for number in gone:
        image = replay_remove_access_control_entry(image, number.to_bytes(16, "big"))
    left = [entry for number, entry in enumerate(entries) if number not in gone]
    fresh = image_of(*left)
    assert sorted(image.entries.values()) == sorted(left)
    assert set(image.patterns) == set(fresh.patterns)
    assert dict(image.prefix_lengths.items()) == dict(fresh.prefix_lengths.items())
    for pattern, of_pattern in fresh.patterns.items():
        found = image.patterns[pattern]
        assert set(found) == set(of_pattern)
        assert all(sorted(found[user]) == sorted(of_pattern[user]) for user in found)
    assert all(entry in image for entry in left)
    assert all((entry in image) == (entry in left) for entry in entries)


def test_an_entry_of_a_known_id_takes_the_place_of_the_old_one() -> None:
    old = AccessControlEntry(2, "a", PatternType.PREFIXED, "User:alice", "*", 3, 3)
    new = replace(old, resource_name="b")
    image = replay_access_control_entry(image_of(old), record_of(0, new))
    assert list(image.entries.values()) == [new]
    assert old not in image
    assert dict(image.prefix_lengths.items()) == {(2, 1): 1}


def test_an_unknown_entry_cannot_go() -> None:
    with pytest.raises(ReplayError):
        replay_remove_access_control_entry(AclsImage(), bytes(16))


def test_without_an_authorizer_all_is_allowed_and_told() -> None:
    assert not UNRESTRICTED.is_restricted
    assert UNRESTRICTED.allows(AclOperation.ALTER, AclResourceType.CLUSTER, CLUSTER_NAME)
    assert UNRESTRICTED.operations_on_cluster() == 8096
    assert UNRESTRICTED.operations_on_topic("any") == 3576


def test_before_the_entries_are_known_only_super_users_get_an_answer() -> None:
    rules = AuthorizerRules(frozenset({"User:admin"}), allows_without_entries=True)
    assert Access(rules, None, Principal("User", "admin"), "host").allows_on_cluster(
        AclOperation.ALTER
    )
    with pytest.raises(RequestError) as caught:
        Access(rules, None, ALICE, "host").allows_on_cluster(AclOperation.ALTER)
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_operations_are_reported_one_by_one() -> None:
    reads = AccessControlEntry(2, "a", PatternType.LITERAL, "User:alice", "*", 3, 3)
    access = Access(AuthorizerRules(), image_of(reads), ALICE, "host")
    assert access.operations_on_topic("a") == 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    assert access.operations_on_topic("b") == 0
    assert access.operations_on_cluster() == 0


def test_denying_an_operation_does_not_deny_what_allowing_it_implies() -> None:
    allows = AccessControlEntry(2, "a", PatternType.LITERAL, "User:alice", "*", 4, 3)
    denies = replace(allows, operation=AclOperation.READ, permission_type=PermissionType.DENY)
    access = Access(AuthorizerRules(), image_of(allows, denies), ALICE, "host")
    assert access.allows_on_topic(AclOperation.WRITE, "a")
    assert access.allows_on_topic(AclOperation.DESCRIBE, "a")
    assert not access.allows_on_topic(AclOperation.READ, "a")


def test_a_type_with_a_colon_is_never_taken_for_another_name() -> None:
    acls = image_of(AccessControlEntry(2, "a", PatternType.LITERAL, "User:b:c", "*", 3, 3))
    right = Access(AuthorizerRules(), acls, Principal("User", "b:c"), "host")
    wrong = Access(AuthorizerRules(), acls, Principal("User:b", "c"), "host")
    assert right.allows_on_topic(AclOperation.READ, "a")
    assert not wrong.allows_on_topic(AclOperation.READ, "a")


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::8:800", "2001:db8:0:0:0:0:8:800"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("somewhere", "somewhere"),
    ],
)
def test_hosts_are_written_as_java_does(host: str, text: str) -> None:
    assert host_text(host) == text
