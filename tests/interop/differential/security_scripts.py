"""Scripts about who may do what: entries come and go while users ask for everything there is."""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from tests.interop.differential import (
    broker_scripts,
    config_scripts,
    partition_scripts,
    quota_scripts,
    topic_scripts,
)
from tests.interop.differential.script import API_KEYS, AnyStep, Script, Step
from tests.interop.differential.sides import UserStep
from tests.interop.differential.story import Chapter, Story, script_of

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.node.handlers.registry import forwardable_keys
from kvorum.wire.apis import API_SPECS, request_class

SUPER_USER: Final = "User:root"
FORWARDABLE: Final = forwardable_keys()
USERS: Final = ("User:alice", "User:alice", "User:bob", "Group:alice", SUPER_USER)
HOSTS: Final = ("10.1.2.3", "10.1.2.3", "2001:db8::1", "127.0.0.1")
HOSTS_IN_ENTRIES: Final = ("*", "*", "*", "10.1.2.3", "2001:db8:0:0:0:0:0:1")
NAMES: Final = ("*", "t", "t1", "t2", "t3", "g", "g1", "nowhere")
STRANGE_CODES: Final = (1, 2, 9, 77, -1)
DYNAMIC: Final = frozenset({"DescribeQuorum", "AddRaftVoter", "RemoveRaftVoter"})
"""Requests whose answers no two controllers have in common."""
TYPES: Final = tuple(kind for kind in AclResourceType if kind > AclResourceType.ANY)
OPERATIONS: Final = tuple(operation for operation in AclOperation if operation > AclOperation.ANY)
PERMISSIONS: Final = (PermissionType.ALLOW, PermissionType.ALLOW, PermissionType.DENY)
ANYTHING: Final = {
    "resourceTypeFilter": AclResourceType.ANY.value,
    "resourceNameFilter": None,
    "patternTypeFilter": PatternType.ANY.value,
    "principalFilter": None,
    "hostFilter": None,
    "operation": AclOperation.ANY.value,
    "permissionType": PermissionType.ANY.value,
}


def entry(story: Story) -> dict[str, Any]:
    """Draw an entry, mostly about topics, groups and the cluster."""
    kind = story.one_of((2, 2, 2, 3, 4, 4, 7, story.one_of(TYPES).value))
    name = CLUSTER_NAME if kind == AclResourceType.CLUSTER else story.one_of(NAMES)
    if kind == AclResourceType.USER:
        name = story.one_of(USERS)
    return {
        "resourceType": kind,
        "resourceName": name,
        "resourcePatternType": story.one_of((3, 3, 4)) if kind != AclResourceType.CLUSTER else 3,
        "principal": story.one_of((*USERS, "User:*")),
        "host": story.one_of(HOSTS_IN_ENTRIES),
        "operation": story.one_of(OPERATIONS).value,
        "permissionType": story.one_of(PERMISSIONS).value,
    }


def strange_entry(story: Story) -> dict[str, Any]:
    """Draw an entry with something wrong about it."""
    made = entry(story)
    field = story.one_of(list(made))
    if isinstance(made[field], int):
        made[field] = story.one_of(STRANGE_CODES)
    else:
        made[field] = story.one_of(("", "x", "*"))
    return made


def create_entries(story: Story) -> None:
    """Create entries, now and then one that makes no sense or that comes twice."""
    entries = [entry(story) for _ in range(story.random.randint(1, 4))]
    if story.chance(0.2):
        entries.append(strange_entry(story))
    if story.chance(0.2):
        entries.append(entries[0])
    story.add("CreateAcls", {"creations": entries})


def narrow(story: Story) -> dict[str, Any]:
    made = dict(ANYTHING)
    like = entry(story)
    if story.chance(0.6):
        made["resourceTypeFilter"] = like["resourceType"]
    if story.chance(0.6):
        made["resourceNameFilter"] = like["resourceName"]
    made["patternTypeFilter"] = story.one_of((1, 2, 3, 4))
    if story.chance(0.4):
        made["principalFilter"] = like["principal"]
    if story.chance(0.3):
        made["hostFilter"] = like["host"]
    if story.chance(0.3):
        made["operation"] = like["operation"]
    if story.chance(0.3):
        made["permissionType"] = like["permissionType"]
    if story.chance(0.1):
        made[story.one_of(("resourceTypeFilter", "operation", "patternTypeFilter"))] = 77
    return made


def delete_entries(story: Story) -> None:
    story.add("DeleteAcls", {"filters": [narrow(story) for _ in range(story.random.randint(1, 2))]})


def describe_entries(story: Story) -> None:
    story.add("DescribeAcls", narrow(story))


def make_token(story: Story) -> None:
    """Make a token, perhaps for another user."""
    owner: dict[str, Any] = {}
    if story.chance(0.4):
        kind, _, name = story.one_of(USERS).partition(":")
        owner = {"ownerPrincipalType": kind, "ownerPrincipalName": name}
    renewers = [{"principalType": "User", "principalName": name} for name in story.some("abc")]
    if story.chance(0.2):
        renewers.append({"principalType": "Group", "principalName": "g"})
    lifetime = story.one_of((-1, 0, 3_600_000, 2**63 - 1))
    story.add("CreateDelegationToken", {"renewers": renewers, "maxLifetimeMs": lifetime, **owner})


def change_token(story: Story) -> None:
    secret = f"$secret:{story.random.randrange(3)}"
    period = story.one_of((-1, 0, 3_600_000, 2**63 - 1))
    if story.chance(0.5):
        story.add("RenewDelegationToken", {"hmac": secret, "renewPeriodMs": period})
    else:
        story.add("ExpireDelegationToken", {"hmac": secret, "expiryTimePeriodMs": period})


def ask_for_controllers(story: Story) -> None:
    """Ask for the controllers, and what may be done to the cluster."""
    body = {"includeClusterAuthorizedOperations": True, "endpointType": 2}
    story.steps.append(Step("DescribeCluster", 2, body))


def pass_on_what_is_not_for_brokers(story: Story) -> None:
    """Put requests into envelopes that may not be passed on."""
    api = story.one_of([spec.name for spec in API_SPECS.values() if spec.key not in FORWARDABLE])
    version = request_class(API_KEYS[api]).MAX_VERSION
    story.steps.append(UserStep(api, version, {}, user=SUPER_USER))


def begin(story: Story) -> None:
    """Have brokers and topics, and perhaps entries."""
    for broker in (1, 2, 3):
        story.start_broker(broker)
    topic_scripts.create(story)
    if story.chance(0.7):
        create_entries(story)


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (24, create_entries),
    (8, delete_entries),
    (8, describe_entries),
    (6, make_token),
    (8, change_token),
    (3, ask_for_controllers),
    (1, pass_on_what_is_not_for_brokers),
    *topic_scripts.DETERMINED_CHAPTERS,
    *partition_scripts.CHAPTERS,
    *broker_scripts.CHAPTERS,
    *config_scripts.CHAPTERS,
    *quota_scripts.CHAPTERS,
)


def security_script(seed: int) -> Script:
    """Return the script of a seed: most of what clients ask for is asked by users."""
    made = script_of("security", seed, CHAPTERS, begin=begin, length=(20, 40))
    story = Story(Random(f"users-{seed}"))
    return Script("security", seed, tuple(_asked_by_another(story, step) for step in made.steps))


def _asked_by_another(story: Story, step: AnyStep) -> AnyStep:
    """Return the step as a user's, where it is one that brokers pass on."""
    if not isinstance(step, Step) or isinstance(step, UserStep) or step.key not in FORWARDABLE:
        return step
    is_about_access = step.api in {"CreateAcls", "DeleteAcls"}
    if step.api in DYNAMIC or story.chance(0.7 if is_about_access else 0.15):
        return step
    user, host = story.one_of(USERS), story.one_of(HOSTS)
    return UserStep(
        step.api, step.version, step.body, is_placed=step.is_placed, user=user, host=host
    )
