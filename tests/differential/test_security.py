"""Users who may do some things and not others, on a real controller and on ours.

``KVORUM_DIFFERENTIAL_SECURITY=n`` runs n generated scripts instead of a few;
``KVORUM_DIFFERENTIAL_SEED=s`` begins at another seed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Final

import pytest
from tests.differential.comparing import Difference
from tests.differential.harness import Pair
from tests.differential.script import AnyStep, Step
from tests.differential.security_scripts import ANYTHING, SUPER_USER, security_script
from tests.differential.sides import Side
from tests.differential.token_secrets import TOKEN_KEY
from tests.interop.kafka.java import Java

from kvorum.metadata.acl_codes import (
    AclOperation,
    AclResourceType,
    PatternType,
    PermissionType,
)

QUICK_SCRIPTS: Final = 12
SCRIPTS: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SECURITY", QUICK_SCRIPTS))
FIRST_SEED: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SEED", "0"))
REPORTED_MAX: Final = 5
PUBLISHING_TIMEOUT_S: Final = 20.0
POLL_INTERVAL_S: Final = 0.01
AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PUBLISHED_LATE: Final = frozenset(
    {
        "CreateAcls",
        "DeleteAcls",
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
    }
)
"""What real Kafka answers before its authorizer and its tokens are up to date."""

pytestmark = [pytest.mark.interop, pytest.mark.timeout(7200)]


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
        """Remove the entries as well."""
        for side in self.sides:
            side.wait_until_leading()
            side.ask("DeleteAcls", {"filters": [ANYTHING]})
        super().reset()


def wait_until_published(side: Side, marker: str) -> None:
    """Create an entry about nobody, and return when the side tells of it."""
    side.ask("CreateAcls", {"creations": [entry(AclResourceType.GROUP, "marker", user=marker)]})
    deadline = time.monotonic() + PUBLISHING_TIMEOUT_S
    while not side.ask("DescribeAcls", {**ANYTHING, "principalFilter": marker})["resources"]:
        assert time.monotonic() < deadline, f"{side.name} does not publish {marker}"
        time.sleep(POLL_INTERVAL_S)
    side.take_records()


def entry(
    kind: AclResourceType, name: str, *, user: str, operation: AclOperation = AclOperation.READ
) -> dict[str, str | int]:
    """Return an entry that allows something."""
    return {
        "resourceType": kind.value,
        "resourceName": name,
        "resourcePatternType": PatternType.LITERAL.value,
        "principal": user,
        "host": "*",
        "operation": operation.value,
        "permissionType": PermissionType.ALLOW.value,
    }


@pytest.fixture(scope="module")
def pair(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PublishingPair]:
    """Both controllers, on which those who connect may do everything, and users may not."""
    settings = {
        "authorizer.class.name": AUTHORIZER,
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
