"""Users who may do some things and not others, on a real controller and on ours.

``KVORUM_DIFFERENTIAL_SECURITY=n`` runs n generated scripts instead of a few;
``KVORUM_DIFFERENTIAL_SEED=s`` begins at another seed.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pytest
from tests.interop.differential.bad_input_scripts import CLUSTER, GOOD
from tests.interop.differential.comparing import Difference, as_text, differences, known_uuids
from tests.interop.differential.harness import Pair, names_of
from tests.interop.differential.script import AnyStep, Body, Step
from tests.interop.differential.security_scripts import ANYTHING, SUPER_USER, security_script
from tests.interop.differential.sides import Side
from tests.interop.differential.view import TOKEN_KEY
from tests.support.kafka.java import Java
from tests.support.topics import WITH_AUTHORIZER

from kvorum.metadata.acl_codes import (
    CLUSTER_NAME,
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)
from kvorum.node.handlers.registry import controller_apis
from kvorum.wire.apis import API_SPECS, request_class
from kvorum.wire.json_form import Json

QUICK_SCRIPTS: Final = 12
SCRIPTS: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SECURITY", QUICK_SCRIPTS))
FIRST_SEED: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SEED", "0"))
REPORTED_MAX: Final = 5
PUBLISHED_LATE: Final = frozenset(
    {"CreateAcls", "DeleteAcls"}
    | {"CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken"}
)
"""Answers of real Kafka before its authorizer and its tokens are up to date."""

pytestmark = pytest.mark.timeout(7200)


class PublishingPair(Pair):
    """Two sides that are waited for after each change of what their authorizers go by."""

    markers = 0

    def _run_step(self, step: AnyStep, known: set[str]) -> list[Difference]:
        found = super()._run_step(step, known)
        if isinstance(step, Step) and step.api in PUBLISHED_LATE:
            self.markers += 1
            for side in self.sides:
                wait_until_published(side, f"User:marker-{self.markers}")
        return found

    def reset(self) -> None:
        for side in self.sides:
            side.wait_until_leading()
            side.ask("DeleteAcls", {"filters": [ANYTHING]})
            wait_until_nothing_is_known(side)
        super().reset()


def wait_until_published(side: Side, marker: str) -> None:
    """Create an entry about no user, and return when the side shows it."""
    side.ask("CreateAcls", {"creations": [entry(AclResourceType.GROUP, "marker", user=marker)]})
    asked = {**ANYTHING, "principalFilter": marker}
    side.wait_until(lambda: side.ask("DescribeAcls", asked)["resources"], f"it tells of {marker}")
    side.take_records()


def wait_until_nothing_is_known(side: Side) -> None:
    side.wait_until(
        lambda: not side.ask("DescribeAcls", ANYTHING)["resources"], "it tells of no entry"
    )


def entry(
    kind: AclResourceType,
    name: str,
    *,
    user: str,
    operation: AclOperation = AclOperation.READ,
    host: str = "*",
) -> dict[str, str | int]:
    return {
        "resourceType": kind.value,
        "resourceName": name,
        "resourcePatternType": PatternType.LITERAL.value,
        "principal": user,
        "host": host,
        "operation": operation.value,
        "permissionType": PermissionType.ALLOW.value,
    }


@pytest.fixture(scope="module")
def pair(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublishingPair]:
    """Both controllers, on which those who connect may do everything, and users may not."""
    settings = {
        **WITH_AUTHORIZER,
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:ANONYMOUS;{SUPER_USER}",
        "delegation.token.secret.key": TOKEN_KEY,
    }
    with PublishingPair(java, tmp_path_factory.mktemp("security"), settings) as pair:
        yield pair


def test_users_get_the_same_answers(pair: PublishingPair) -> None:
    outcomes = [pair.run(security_script(FIRST_SEED + number)) for number in range(SCRIPTS)]
    failing = [outcome for outcome in outcomes if outcome.findings]
    assert not failing, f"{len(failing)} of {SCRIPTS}:\n" + "\n".join(
        outcome.report() for outcome in failing[:REPORTED_MAX]
    )


NOT_ASKED: Final = frozenset(
    {
        # These need no permission.
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        # Kafka's controllers list these and fail them; ours answer.
        "DescribeUserScramCredentials",
        "DescribeDelegationToken",
    }
)
HOSTS: Final = {
    operation: f"127.0.1.{operation.value}"
    for operation in (
        AclOperation.ALL,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    )
}
"""From which address a connection has which one permission on the cluster."""
REFUSED: Final = re.compile(r'"errorCode": (29|30|31)\b')
RESOURCES: Final = tuple(
    {"resourceType": kind, "resourceName": name}
    for kind, name in ((2, "a"), (2, "closed"), (4, ""), (16, "m"), (32, "g"))
)
LOGGER: Final = {"resourceType": 8, "resourceName": "3000"}
BODIES: Final[Mapping[str, Body]] = {
    **GOOD,
    "DescribeAcls": ANYTHING,
    "DeleteAcls": {"filters": [{**ANYTHING, "principalFilter": "User:nobody"}]},
    "CreateAcls": {"creations": [entry(AclResourceType.GROUP, "none", user="User:alice")]},
    "Envelope": {"clientHostAddress": "CgECAw=="},
    "Fetch": {
        "sessionId": 9,
        "topics": [{"topic": "t", "partitions": [{"partition": 0, "fetchOffset": 0}]}],
    },
    # One without any partition ends the process of a real controller that lets it in.
    "FetchSnapshot": {"topics": [{"name": "nowhere", "partitions": [{"partition": 0}]}]},
    "DescribeConfigs": {
        "resources": [{**resource, "configurationKeys": []} for resource in (*RESOURCES, LOGGER)]
    },
    "IncrementalAlterConfigs": {
        "resources": [{**resource, "configs": []} for resource in (*RESOURCES, LOGGER)]
    },
    "AlterConfigs": {"resources": [{**resource, "configs": []} for resource in RESOURCES]},
    "DeleteTopics": {
        "topics": [{"name": "closed"}, {"name": "nowhere"}],
        "topicNames": ["closed", "nowhere"],
        "timeoutMs": 60_000,
    },
}


@pytest.fixture(scope="module")
def closed(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both controllers, on which connections may do what the entries for their address say.

    Everything may be done as long as no entry is about it, so that there can be entries at all.
    """
    settings = {**WITH_AUTHORIZER, "super.users": SUPER_USER}
    with Pair(java, tmp_path_factory.mktemp("closed"), settings) as pair:
        for side in pair.sides:
            for step in CLUSTER:
                side.send(step)
                side.receive(step)
                side.take_records()
            _close(side)
        yield pair


def test_a_connection_without_permissions_is_refused_the_same(closed: Pair) -> None:
    found = [
        (step, difference)
        for step in _every_request()
        for difference in _ask_both(closed.sides, step)
    ]
    assert not found, "\n".join(f"{step.as_json()}\n  {difference}" for step, difference in found)


@pytest.mark.parametrize("operation", HOSTS)
def test_a_permission_lets_in_the_same_requests(closed: Pair, operation: AclOperation) -> None:
    newest = {step.api: step for step in _every_request()}
    let_in: list[set[str]] = []
    for side in closed.sides:
        side.connect_from(HOSTS[operation])
        allowed: set[str] = set()
        for step in newest.values():
            side.send(step)
            if not REFUSED.search(as_text(side.receive(step))):
                allowed.add(step.api)
        side.connect_from("")
        let_in.append(allowed)
    assert let_in[0] == let_in[1]


def _close(side: Side) -> None:
    """Leave the cluster, a group and a topic to another user, and wait until that is known."""
    cluster, anonymous = (AclResourceType.CLUSTER, CLUSTER_NAME), "User:ANONYMOUS"
    creations = [
        entry(*cluster, user=anonymous, operation=operation, host=host)
        for operation, host in HOSTS.items()
    ]
    creations += [
        entry(AclResourceType.TOPIC, name, user=SUPER_USER) for name in ("closed", "a", "b")
    ]
    creations.append(entry(AclResourceType.GROUP, "g", user=SUPER_USER))
    results = side.ask("CreateAcls", {"creations": creations})["results"]
    assert not any(result["errorCode"] for result in results)
    side.wait_until(
        lambda: side.ask("DescribeAcls", ANYTHING)["errorCode"] != 0, "it goes by the entries"
    )


def _every_request() -> Iterator[Step]:
    """Yield a request of each version of everything that a controller serves."""
    for key in sorted(controller_apis()):
        kind = request_class(key)
        api = API_SPECS[key].name
        if api not in NOT_ASKED:
            for version in range(kind.MIN_VERSION, kind.MAX_VERSION + 1):
                yield Step(api, version, BODIES.get(api, {}))


def _ask_both(sides: Sequence[Side], step: Step) -> list[Difference]:
    known: set[str] = set()
    answers: list[Json] = []
    for side in sides:
        known |= known_uuids(side.send(step))
        answers.append(names_of(side, known).answer(step.api, side.receive(step)))
    return list(differences(answers[0], answers[1], "answer"))
