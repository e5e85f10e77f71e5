"""``kvorum cluster`` and ``kvorum features`` refuse what kafka-cluster and kafka-features refuse.

No cluster is there: the output comes from the command line, its files and its addresses.
"""

import subprocess
from pathlib import Path

import pytest
from tests.interop.quorum_tools import comparable, logged, run_ours, run_real
from tests.support.kafka.java import Java
from tests.support.kafka.tools import TOOL_CLASSES, ToolResult, ToolRunner
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.sample


Arguments = tuple[str, ...]
NOBODY = "127.0.0.1:1"
SERVER = ("--bootstrap-server", NOBODY)
CONTROLLER = ("--bootstrap-controller", NOBODY)
IMPATIENT = "request.timeout.ms=700\ndefault.api.timeout.ms=900\n"
ID = ("cluster-id",)
UNREGISTER = ("unregister",)
LIST = ("list-endpoints",)
CLUSTER_USAGE: tuple[Arguments, ...] = (
    (),
    ("-h",),
    ("unregister", "-h"),
    ID,
    UNREGISTER,
    LIST,
    ("bogus",),
    ("",),
    ("c",),
    ("l", "--bogus"),
    SERVER,
    (*SERVER, *ID),
    (*ID, "--bootstrap-server"),
    (*ID, *SERVER, *CONTROLLER),
    (*ID, "-b", NOBODY, "-C", NOBODY),
    (*ID, *SERVER, "more"),
    (*ID, *SERVER, "--include-fenced-brokers"),
    (*ID, "--bootstrap", NOBODY),
    (*ID, *SERVER, "--id", "1"),
    (*UNREGISTER, *SERVER),
    (*UNREGISTER, "--bogus"),
    (*UNREGISTER, "--id"),
    (*UNREGISTER, "--id", "1"),
    (*UNREGISTER, *SERVER, "--id", "x"),
    (*UNREGISTER, *SERVER, "-i", "99999999999"),
    (*UNREGISTER, *SERVER, "-i", ""),
    (*UNREGISTER, *SERVER, "-i1.5"),
    (*UNREGISTER, "--i", "x", *SERVER),
    (*LIST, "--include-fenced-brokers=yes", *SERVER),
    (*LIST, "--command-config"),
    *((word,) for word in ("clusterid", "list", "unregsiter", "endpoints", "xlist-endpoint")),
    *(
        (*LIST, word)
        for word in ("--fenced", "--bootstrap-servers", "--cofnig", "--hlep", "-config")
    ),
)
CLUSTER_VALUES: tuple[Arguments, ...] = (
    (*ID, *SERVER, "--config", "DIR/none"),
    (*ID, *SERVER, "--command-config", "DIR/none"),
    (*ID, *SERVER, "-c", "DIR"),
    (*ID, *SERVER, "--config", "DIR/a", "--command-config", "DIR/b"),
    (*LIST, *CONTROLLER, "--include-fenced-brokers"),
    (*LIST, "-C", NOBODY, "--incl"),
    (*LIST, "-C", "x", "--include-fenced-brokers"),
    *(
        (*command, option, address)
        for command, option in ((ID, "-b"), (LIST, "-C"), ((*UNREGISTER, "-i1"), "-b"))
        for address in ("", ",", "127.0.0.1", "127.0.0.1:x", "a b:1", "no-such-host.invalid:1")
    ),
)
UPGRADE = (*SERVER, "upgrade")
DOWNGRADE = (*SERVER, "downgrade")
DISABLE = (*SERVER, "disable")
DRY_RUN = ("disable", "--feature", "a", "--dry-run")
MAPPING = ("version-mapping",)
DEPENDENCIES = ("feature-dependencies",)
FEATURES_USAGE: tuple[Arguments, ...] = (
    (),
    SERVER,
    ("bogus",),
    ("d",),
    ("d", *SERVER),
    ("describe",),
    ("describe", *SERVER),
    ("describe", "--bogus"),
    ("upgrade",),
    ("upgrade", "--feature", "x=1"),
    ("disable", "--feature"),
    (*SERVER, *CONTROLLER, "describe"),
    ("--bootstrap", NOBODY, "describe"),
    (*SERVER, "describe", "--node-id"),
    (*SERVER, "describe", "--node-id", "x"),
    (*SERVER, "describe", "--node-id", "99999999999"),
    (*SERVER, "describe", "more"),
    (*SERVER, "bogus", "--feature", "x"),
    (*UPGRADE, "--unsafe"),
    (*UPGRADE, "--dry-run=1"),
    (*DISABLE, "--metadata", "3.3-IV3"),
    DEPENDENCIES,
    (*DEPENDENCIES, "--bogus"),
    (*DEPENDENCIES, "--feature"),
    (*DEPENDENCIES, "group.version=1"),
    (*MAPPING, "--release-version"),
    (*MAPPING, "--feature", "x=1"),
    ("--command-config", "DIR/none", "describe"),
)
FEATURES_VALUES: tuple[Arguments, ...] = (
    (*SERVER, "describe", "--node-id", "-1"),
    ("--command-config", "DIR", *SERVER, "describe"),
    UPGRADE,
    DOWNGRADE,
    DISABLE,
    (*UPGRADE, "--dry-run"),
    (*UPGRADE, "--feature", "group.version"),
    (*UPGRADE, "--feature", "group.version=x"),
    (*UPGRADE, "--feature", "group.version=99999"),
    (*UPGRADE, "--feature", "group.version="),
    (*UPGRADE, "--feature", " =1"),
    (*UPGRADE, "--feature", "=1"),
    (*UPGRADE, "--feature", "a=1", "--feature", "a=2"),
    (*UPGRADE, "--feature", "a=1=2"),
    (*UPGRADE, "--metadata", "3.2"),
    (*UPGRADE, "--metadata", "3.9", "--feature", "metadata.version=20"),
    (*UPGRADE, "--metadata", "4.0", "--feature", "x"),
    (*UPGRADE, "--release-version", "5.0"),
    (*UPGRADE, "--release-version", ""),
    (*UPGRADE, "--release-version", "4.0", "--feature", "x=1"),
    (*DOWNGRADE, "--release-version", "4.0", "--metadata", "3.9"),
    (*DISABLE, "--feature", ""),
    (*DISABLE, "--feature", "a", "--feature", "a"),
    (*MAPPING, "--release-version", "3.2"),
    (*MAPPING, "--release-version", ""),
    (*MAPPING, "--release-version", "x"),
    (*DEPENDENCIES, "--feature", "group.version"),
    (*DEPENDENCIES, "--feature", "group.version=x"),
    (*DEPENDENCIES, "--feature", "group.version=9"),
    (*DEPENDENCIES, "--feature", "group.version=1", "--feature", "bogus=1"),
    (*DEPENDENCIES, "--feature", "metadata.version=2"),
    *(
        (option, address, "describe")
        for option in ("--bootstrap-server", "--bootstrap-controller")
        for address in ("", ",", "127.0.0.1", "127.0.0.1:x", "a b:1", "no-such-host.invalid:1")
    ),
)
WITHOUT_A_CLUSTER: tuple[Arguments, ...] = (
    MAPPING,
    (*SERVER, *MAPPING),
    ("--command-config", "DIR/none", *MAPPING),
    *((*MAPPING, "--release-version", text) for text in ("3.3-IV3", "3.9", "4.2.1", "4.4-IV0")),
    (*DEPENDENCIES, "--feature", "metadata.version=30"),
    *(
        (*DEPENDENCIES, "--feature", f" {name} = {level} ")
        for name in (
            "kraft.version",
            "transaction.version",
            "group.version",
            "eligible.leader.replicas.version",
            "share.version",
            "streams.version",
        )
        for level in (0, 1)
    ),
    ("feat", "--feature", "metadata.version=7", "--feature", "transaction.version=2"),
)
CASES = [
    *(("kafka-cluster", arguments) for arguments in CLUSTER_VALUES),
    *(("kafka-features", arguments) for arguments in (*FEATURES_USAGE, *FEATURES_VALUES)),
]


def named(arguments: Arguments | str) -> str:
    return arguments if isinstance(arguments, str) else " ".join(arguments)


@pytest.mark.parametrize(("tool", "arguments"), CASES, ids=named)
def test_mistakes_are_reported_alike(
    tool: str, arguments: Arguments, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    filled = [word.replace("DIR", str(tmp_path)) for word in arguments]
    mine = run_ours(filled, tool)
    assert comparable(mine) == comparable(run_real(filled, kafka_tools, tool))
    assert mine.exit_code == 1


@pytest.mark.parametrize("arguments", CLUSTER_USAGE, ids=named)
def test_wrong_usage_of_cluster_is_reported_alike(arguments: Arguments, java: Java) -> None:
    """Kafka's tool ends its whole process here, so that it gets one of its own."""
    mine = run_ours(arguments, "kafka-cluster")
    command = java.command(TOOL_CLASSES["kafka-cluster"])
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    real = ToolResult(done.returncode, done.stdout, done.stderr)
    if "-h" not in arguments:
        assert comparable(mine) == comparable(real)
    assert mine.exit_code == real.exit_code == 1


@pytest.mark.parametrize("arguments", WITHOUT_A_CLUSTER, ids=named)
def test_versions_and_dependencies_need_no_cluster(
    arguments: Arguments, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    filled = [word.replace("DIR", str(tmp_path)) for word in arguments]
    mine = run_ours(filled, "kafka-features")
    assert mine == run_real(filled, kafka_tools, "kafka-features")
    assert mine.exit_code == 0


@pytest.mark.parametrize("arguments", [("--help",), ("upgrade", "-h")], ids=named)
def test_help_on_features_is_not_a_mistake(arguments: Arguments, kafka_tools: ToolRunner) -> None:
    mine = run_ours(arguments, "kafka-features")
    assert mine.exit_code == run_real(arguments, kafka_tools, "kafka-features").exit_code == 0


@pytest.mark.parametrize(
    ("tool", "command"),
    [
        ("kafka-cluster", (*ID, "-b", NOBODY, "--config", "FILE")),
        ("kafka-cluster", (*LIST, "-C", f"{NOBODY},localhost:2", "-c", "FILE")),
        ("kafka-cluster", (*UNREGISTER, "-b", "[::1]:1", "-i", "7", "-c", "FILE")),
        ("kafka-cluster", (*UNREGISTER, "-C", "SILENT", "-i", "7", "-c", "FILE")),
        ("kafka-features", (*SERVER, "--command-config", "FILE", "describe")),
        ("kafka-features", ("--command-config", "FILE", *CONTROLLER, "describe", "--node-id", "2")),
        (
            "kafka-features",
            ("--command-config", "FILE", *UPGRADE, "--feature", "b=1", "--feature", "a=2"),
        ),
        ("kafka-features", ("--command-config", "FILE", "--bootstrap-server", "SILENT", *DRY_RUN)),
    ],
    ids=named,
)
def test_no_node_answers(
    tool: str, command: Arguments, silent: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(IMPATIENT)
    filled = [word.replace("SILENT", silent).replace("FILE", str(file)) for word in command]
    mine, real = run_ours(filled, tool), run_real(filled, kafka_tools, tool)
    assert comparable(mine) == comparable(real)
    assert mine.exit_code == 1
    assert "Timed out waiting for a node assignment" in mine.stdout + mine.stderr
    if "SILENT" not in command:
        assert logged(mine) == logged(real)
