"""Decisions about access, judged by Kafka's StandardAuthorizer itself."""

import logging
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from random import Random

import pytest
from tests.support.kafka.java import Java

from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acl_filters import AclFilter, matching_entries
from kvorum.metadata.acls_image import AccessControlEntry, AclsImage, replay_access_control_entry
from kvorum.metadata.authorizer_log import LOGGER_NAME
from kvorum.metadata.standard_authorizer import Access, AuthorizerRules, Principal, host_text
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord

WORLDS = 600
QUESTIONS_PER_WORLD = 40
NAMES = ("*", "a", "ab", "abc", "b", "a*", "kafka-cluster", "abcd", "A", "*a")
"""No name begins with a character before the asterisk: Kafka's search would not come to an end."""
TYPES = tuple(kind for kind in AclResourceType if kind > AclResourceType.ANY)
OPERATIONS = tuple(operation for operation in AclOperation if operation > AclOperation.ANY)
IMPLICATIONS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
)
PERMISSIONS = (PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)
PRINCIPALS = ("User:alice", "User:bob", "User:*", "Group:alice", "User:a:b", "User:")
ASKING = tuple(principal for principal in PRINCIPALS if principal != "User:*")
"""A user of the name "*" fails Kafka's authorizer."""
HOSTS = (
    "*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "2001:db8:0:0:0:0:0:1",
    "10.0.0.0/8", "10.0.0.2/31", "010.0.0.1/32", "0.0.0.0/0", "10.9.9.9/33", "10.0.0/8",
    "2001:db8::/32", "::1/128", "::/0", "2001:db8::1/129", "::ffff:10.0.0.0/104",
)  # fmt: skip
CLIENT_HOSTS = (
    "10.0.0.1", "10.0.0.2", "::1", "2001:db8::1", "::ffff:10.0.0.1", "10.9.9.9", "0.0.0.0", "::",
)  # fmt: skip


@dataclass(frozen=True)
class World:
    rules: AuthorizerRules
    acls: AclsImage

    def lines(self) -> Iterator[str]:
        allows = str(self.rules.allows_without_entries).lower()
        yield "\t".join(("authorizer", ";".join(self.rules.super_users), allows))
        for entry in self.acls.entries.values():
            words = (
                int(entry.resource_type),
                entry.resource_name,
                int(entry.pattern_type),
                entry.principal,
                entry.host,
                int(entry.operation),
                int(entry.permission_type),
            )
            yield "\t".join(("entry", *map(str, words)))


def _world(random: Random) -> World:
    acls = AclsImage()
    # A few of each, so that entries meet each other and the questions.
    types = random.sample(TYPES, k=2)
    names = random.sample(NAMES, k=3)
    operations = random.sample(OPERATIONS, k=3) + random.sample(IMPLICATIONS, k=2)
    principals = random.sample(PRINCIPALS, k=2)
    hosts = ("*", "*", random.choice(HOSTS))
    for number in range(random.choice((0, 1, 2, 4, 8, 16))):
        entry = AccessControlEntry(
            resource_type=random.choice(types),
            resource_name=random.choice(names),
            pattern_type=random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            principal=random.choice(principals),
            host=random.choice(hosts),
            operation=random.choice(operations),
            permission_type=random.choice(PERMISSIONS),
        )
        if entry not in acls:
            record = AccessControlEntryRecord(id=number.to_bytes(16, "big"), **asdict(entry))
            acls = replay_access_control_entry(acls, record)
    super_users = frozenset(random.sample(PRINCIPALS, k=random.choice((0, 0, 1))))
    return World(AuthorizerRules(super_users, random.random() < 0.5), acls)


def _question(random: Random, world: World, caplog: pytest.LogCaptureFixture) -> tuple[str, str]:
    """Return a question as the Java side reads it, and our answer."""
    entries = list(world.acls.entries.values())
    kind = random.choice(TYPES)
    if entries and random.random() < 0.9:
        kind = AclResourceType(random.choice(entries).resource_type)
    operation = random.choice(OPERATIONS + 2 * IMPLICATIONS)
    what = random.choice(("may", "may", "may", "somewhere", "match"))
    if what == "match":
        return _filter_question(random, world, entries)
    asking = [entry.principal for entry in entries if entry.principal in ASKING]
    user = Principal.from_text(random.choice((*asking, random.choice(ASKING))))
    host = random.choice(CLIENT_HOSTS)
    access = Access(world.rules, world.acls, user, host_text(host), request="Metadata")
    words = (what, user.type, user.name, host, str(int(operation)), str(int(kind)))
    if what == "somewhere":
        return "\t".join(words), str(int(access.allows_somewhere(operation, kind)))
    name = random.choice([entry.resource_name for entry in entries] + list(NAMES))
    caplog.clear()
    is_allowed = access.allows(operation, kind, name)
    return "\t".join((*words, name)), f"{int(is_allowed)}\t{caplog.messages[0]}"


def _filter_question(
    random: Random, world: World, entries: list[AccessControlEntry]
) -> tuple[str, str]:
    def perhaps(text: str) -> str | None:
        return None if random.random() < 0.6 else text

    like = random.choice(entries) if entries else None
    wanted = AclFilter(
        resource_type=random.choice((AclResourceType.ANY, *TYPES)),
        name=perhaps(random.choice(NAMES)),
        pattern_type=random.choice([p for p in PatternType if p != PatternType.UNKNOWN]),
        principal=perhaps(like.principal if like else "User:alice"),
        host=perhaps(random.choice(HOSTS)),
        operation=random.choice((AclOperation.ANY, AclOperation.ANY, *OPERATIONS)),
        permission_type=random.choice((PermissionType.ANY, PermissionType.DENY)),
    )
    words = (
        int(wanted.resource_type),
        wanted.name or "-",
        int(wanted.pattern_type),
        wanted.principal or "-",
        wanted.host or "-",
        int(wanted.operation),
        int(wanted.permission_type),
    )
    return "\t".join(("match", *map(str, words))), str(
        len(list(matching_entries(world.acls, wanted)))
    )


@pytest.mark.slow
def test_kafkas_authorizer_decides_and_logs_the_same(
    java: Java, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=LOGGER_NAME)
    random = Random(20)
    lines: list[str] = []
    ours: list[tuple[str, str]] = []
    for _ in range(WORLDS):
        world = _world(random)
        start = len(lines)
        lines.extend(world.lines())
        told = " | ".join(lines[start:])
        for _ in range(QUESTIONS_PER_WORLD):
            question, answer = _question(random, world, caplog)
            lines.append(question)
            ours.append((f"{question} in {told}", answer))
    answers = java.answers("AuthorizerJudge", asked=lines)
    assert len(answers) == len(ours)
    differences = [
        f"{question}: ours {mine}, Kafka's {theirs}"
        for (question, mine), theirs in zip(ours, answers, strict=True)
        if mine != theirs
    ]
    assert differences == []
    allowed = [answer for answer in answers if answer.startswith("1")]
    assert len(allowed) > len(answers) // 20
