"""The tests that come with franz-go, a client in Go, run against brokers of ours.

They chain consumers that pass records on, in groups of both protocols, in transactions and in share
groups, and look for records that are lost, doubled or out of order. With `chaos` each connection
of theirs breaks after about a second.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.franz_go import NEEDS_GO, compiled_tests

from kvorum.testing import Cluster

PACKAGE: Final = "github.com/twmb/franz-go/pkg/kgo"
RECORDS: Final = 10_000
PARTITIONS_MAX: Final = 7
CHAINS: Final = ("TestGroupETL", "TestTxnEtl", "TestShareGroupETL")
OF_GROUPS: Final = (
    *("TestGroupSimple", "Test848RegexBrokerResolves", "TestUnknownGroupOffsetFetchPinned"),
    *("TestShareGroup", "TestShareGroupAckOnClose", "TestShareGroupOffsetsAdmin"),
    *("TestConsumeRegex", "TestConsumeRegexShareSkipsInternal", "TestAddRemovePartitions"),
)
OFTEN_DELIVERED: Final = {"group.share.delivery.count.limit": "10"}
"""The most deliveries that may be set: each broken connection costs a record one."""
PATIENCE_S: Final = 300
PASSED: Final = re.compile(r"^--- PASS: (\w+)", re.MULTILINE)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(2 * PATIENCE_S),
    NEEDS_GO,
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests of the client, compiled."""
    return compiled_tests(PACKAGE, tmp_path_factory.mktemp("franz-go"))


def passed(program: Path, *names: str, chaos: bool) -> set[str]:
    """Run tests by their names; return those that have passed, or fail with what was printed."""
    with Cluster(brokers=3, overrides=OFTEN_DELIVERED) as cluster:
        environment = {
            **os.environ,
            "KGO_SEEDS": cluster.bootstrap_servers,
            "KGO_TEST_RF": "3",
            "KGO_TEST_RECORDS": str(RECORDS),
            "KGO_TEST_MAX_TOPIC_PARTS": str(PARTITIONS_MAX),
            "KGO_TEST_CHAOS": str(int(chaos)),
            "KGO_LOG_LEVEL": "none",
        }
        wanted = f"^({'|'.join(names)})$"
        done = subprocess.run(
            [program, "-test.v", "-test.run", wanted, "-test.timeout", f"{PATIENCE_S}s"],
            env=environment,
            cwd=program.parent,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-2_000:]
    return set(PASSED.findall(done.stdout))


@pytest.mark.parametrize("chaos", [False, True], ids=["calm", "chaos"])
@pytest.mark.parametrize("name", CHAINS)
def test_chained_consumers_lose_and_double_nothing(program: Path, name: str, chaos: bool) -> None:
    assert passed(program, name, chaos=chaos) == {name}


def test_groups_do_what_their_client_expects(program: Path) -> None:
    assert passed(program, *OF_GROUPS, chaos=False) == set(OF_GROUPS)
