"""``kvorum cluster`` and ``kvorum features`` refuse what kafka-cluster and kafka-features refuse.

No cluster is there: the output comes from the command line, its files and its addresses.
"""

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from tests.interop.quorum_tools import (
    comparable,
    logged,
    run_ours,
    run_real,
    with_levels_of_ours_mapped,
)
from tests.support.kafka.java import TOOL_CLASSES, Java, ToolResult, ToolRunner
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.sample


NOBODY = "127.0.0.1:1"
SERVER = f"--bootstrap-server {NOBODY}"
CONTROLLER = f"--bootstrap-controller {NOBODY}"
IMPATIENT = "request.timeout.ms=700\ndefault.api.timeout.ms=900\n"
WRONG_ADDRESSES = ("''", ",", "127.0.0.1", "127.0.0.1:x", "'a b:1'", "no-such-host.invalid:1")
CLUSTER_USAGE = (
    *("", "-h", "unregister -h", "cluster-id", "unregister", "list-endpoints", "bogus", "''", "c"),
    *("l --bogus", SERVER, f"{SERVER} cluster-id", "cluster-id --bootstrap-server"),
    *(f"cluster-id {SERVER} {CONTROLLER}", f"cluster-id -b {NOBODY} -C {NOBODY}"),
    *(f"cluster-id {SERVER} more", f"cluster-id {SERVER} --include-fenced-brokers"),
    *(f"cluster-id --bootstrap {NOBODY}", f"cluster-id {SERVER} --id 1", f"unregister {SERVER}"),
    *("unregister --bogus", "unregister --id", "unregister --id 1", f"unregister {SERVER} --id x"),
    *(f"unregister {SERVER} -i 99999999999", f"unregister {SERVER} -i ''"),
    *(f"unregister {SERVER} -i1.5", f"unregister --i x {SERVER}"),
    *(f"list-endpoints --include-fenced-brokers=yes {SERVER}", "list-endpoints --command-config"),
    *("clusterid", "list", "unregsiter", "endpoints", "xlist-endpoint", "list-endpoints --fenced"),
    *("list-endpoints --bootstrap-servers", "list-endpoints --cofnig", "list-endpoints --hlep"),
    "list-endpoints -config",
)
CLUSTER_VALUES = (
    *(f"cluster-id {SERVER} --config DIR/none", f"cluster-id {SERVER} --command-config DIR/none"),
    *(f"cluster-id {SERVER} -c DIR", f"cluster-id {SERVER} --config DIR/a --command-config DIR/b"),
    f"list-endpoints {CONTROLLER} --include-fenced-brokers",
    *(f"list-endpoints -C {NOBODY} --incl", "list-endpoints -C x --include-fenced-brokers"),
    *(
        f"{command} {address}"
        for command in ("cluster-id -b", "list-endpoints -C", "unregister -i1 -b")
        for address in WRONG_ADDRESSES
    ),
)
FEATURES_USAGE = (
    *("", SERVER, "bogus", "d", f"d {SERVER}", "describe"),
    *("describe --bogus", "upgrade", "upgrade --feature x=1", "disable --feature"),
    *(f"{SERVER} {CONTROLLER} describe", f"--bootstrap {NOBODY} describe"),
    *(f"{SERVER} describe --node-id", f"{SERVER} describe --node-id x"),
    *(f"{SERVER} describe --node-id 99999999999", f"{SERVER} describe more"),
    *(f"{SERVER} bogus --feature x", f"{SERVER} upgrade --unsafe", f"{SERVER} upgrade --dry-run=1"),
    *(f"{SERVER} disable --metadata 3.3-IV3", "feature-dependencies"),
    *("feature-dependencies --bogus", "feature-dependencies --feature"),
    *("feature-dependencies group.version=1", "version-mapping --release-version"),
    *("version-mapping --feature x=1", "--command-config DIR/none describe"),
)
FEATURES_VALUES = (
    *(f"{SERVER} describe --node-id -1", f"--command-config DIR {SERVER} describe"),
    *(f"{SERVER} upgrade", f"{SERVER} downgrade", f"{SERVER} disable"),
    *(f"{SERVER} upgrade --dry-run", f"{SERVER} upgrade --feature group.version"),
    f"{SERVER} upgrade --feature group.version=x",
    f"{SERVER} upgrade --feature group.version=99999",
    *(f"{SERVER} upgrade --feature group.version=", f"{SERVER} upgrade --feature ' =1'"),
    *(f"{SERVER} upgrade --feature =1", f"{SERVER} upgrade --feature a=1 --feature a=2"),
    *(f"{SERVER} upgrade --feature a=1=2", f"{SERVER} upgrade --metadata 3.2"),
    f"{SERVER} upgrade --metadata 3.9 --feature metadata.version=20",
    *(f"{SERVER} upgrade --metadata 4.0 --feature x", f"{SERVER} upgrade --release-version 5.0"),
    f"{SERVER} upgrade --release-version ''",
    f"{SERVER} upgrade --release-version 4.0 --feature x=1",
    *(f"{SERVER} downgrade --release-version 4.0 --metadata 3.9", f"{SERVER} disable --feature ''"),
    *(f"{SERVER} disable --feature a --feature a", "version-mapping --release-version 3.2"),
    *("version-mapping --release-version ''", "version-mapping --release-version x"),
    "feature-dependencies --feature group.version",
    "feature-dependencies --feature group.version=x",
    "feature-dependencies --feature group.version=9",
    "feature-dependencies --feature group.version=1 --feature bogus=1",
    "feature-dependencies --feature metadata.version=2",
    *(f"--bootstrap-server {address} describe" for address in WRONG_ADDRESSES),
    *(f"--bootstrap-controller {address} describe" for address in WRONG_ADDRESSES),
)
NAMES = ("kraft", "transaction", "group", "eligible.leader.replicas", "share", "streams")
RELEASES = ("3.3-IV3", "3.9", "4.2.1", "4.4-IV0")
WITHOUT_A_CLUSTER = (
    *("version-mapping", f"{SERVER} version-mapping", "--command-config DIR/none version-mapping"),
    *(f"version-mapping --release-version {release}" for release in RELEASES),
    "feature-dependencies --feature metadata.version=30",
    *(f"feature-dependencies --feature ' {name}.version = 0 '" for name in NAMES),
    *(f"feature-dependencies --feature ' {name}.version = 1 '" for name in NAMES),
    "feat --feature metadata.version=7 --feature transaction.version=2",
)
CASES = [
    *(("kafka-cluster", line) for line in CLUSTER_VALUES),
    *(("kafka-features", line) for line in (*FEATURES_USAGE, *FEATURES_VALUES)),
]


@pytest.mark.parametrize(("tool", "line"), CASES)
def test_mistakes_are_reported_alike(
    tool: str, line: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    filled = shlex.split(line.replace("DIR", str(tmp_path)))
    mine = run_ours(filled, tool)
    assert comparable(mine) == comparable(run_real(filled, kafka_tools, tool))
    assert mine.exit_code == 1


@pytest.mark.parametrize("line", CLUSTER_USAGE)
def test_wrong_usage_of_cluster_is_reported_alike(line: str, java: Java) -> None:
    """Kafka's tool ends its whole process here, so that it gets one of its own."""
    arguments = shlex.split(line)
    mine = run_ours(arguments, "kafka-cluster")
    command = java.command(TOOL_CLASSES["kafka-cluster"])
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    real = ToolResult(done.returncode, done.stdout, done.stderr)
    assert real.exit_code == 1
    if "-h" in arguments:
        # A help that was asked for is no failure with ours.
        assert mine.exit_code == 0
    else:
        assert comparable(mine) == comparable(real)
        assert mine.exit_code == 1


@pytest.mark.parametrize("line", WITHOUT_A_CLUSTER)
def test_versions_and_dependencies_need_no_cluster(
    line: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    filled = shlex.split(line.replace("DIR", str(tmp_path)))
    mine = run_ours(filled, "kafka-features")
    real = run_real(filled, kafka_tools, "kafka-features")
    assert mine == replace(real, stdout=with_levels_of_ours_mapped(line, real.stdout))
    assert mine.exit_code == 0


@pytest.mark.parametrize("line", ["--help", "upgrade -h"])
def test_help_on_features_is_not_a_mistake(line: str, kafka_tools: ToolRunner) -> None:
    mine = run_ours(line.split(), "kafka-features")
    assert mine.exit_code == run_real(line.split(), kafka_tools, "kafka-features").exit_code == 0


@pytest.mark.parametrize(
    ("tool", "line"),
    [
        ("kafka-cluster", f"cluster-id -b {NOBODY} --config FILE"),
        ("kafka-cluster", f"list-endpoints -C {NOBODY},localhost:2 -c FILE"),
        ("kafka-cluster", "unregister -b [::1]:1 -i 7 -c FILE"),
        ("kafka-cluster", "unregister -C SILENT -i 7 -c FILE"),
        ("kafka-features", f"{SERVER} --command-config FILE describe"),
        ("kafka-features", f"--command-config FILE {CONTROLLER} describe --node-id 2"),
        ("kafka-features", f"--command-config FILE {SERVER} upgrade --feature b=1 --feature a=2"),
        (
            "kafka-features",
            "--command-config FILE --bootstrap-server SILENT disable --feature a --dry-run",
        ),
    ],
)
def test_no_node_answers(
    tool: str, line: str, silent: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(IMPATIENT)
    filled = shlex.split(line.replace("SILENT", silent).replace("FILE", str(file)))
    mine, real = run_ours(filled, tool), run_real(filled, kafka_tools, tool)
    assert comparable(mine) == comparable(real)
    assert mine.exit_code == 1
    assert "Timed out waiting for a node assignment" in mine.stdout + mine.stderr
    if "SILENT" not in line:
        assert logged(mine) == logged(real)
