"""``kvorum quorum`` says what kafka-metadata-quorum says, about the same clusters and mistakes."""

import asyncio
import logging
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.fake_server import FakeServer
from tests.interop.quorum_tools import comparable, logged, run_ours, run_real, without_progress
from tests.support.fake_node import SILENCE
from tests.support.kafka.java import Java, ToolResult, ToolRunner
from tests.support.node import Node

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import class_of, is_retriable
from kvorum.cli.admin.nodes import CONTROLLERS, admin_settings
from kvorum.cli.admin.reassignment_calls import fetch_timeout_call
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_raft_voter import AddRaftVoterResponse
from kvorum.wire.messages.describe_cluster import DescribeClusterResponse
from kvorum.wire.messages.describe_quorum import DescribeQuorumResponse
from kvorum.wire.messages.remove_raft_voter import RemoveRaftVoterResponse
from kvorum.wire.primitives import Message

NOBODY = "127.0.0.1:1"
SERVER = f"--bootstrap-server {NOBODY}"
CONTROLLER = f"--bootstrap-controller {NOBODY}"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
IMPATIENT = "request.timeout.ms=700\ndefault.api.timeout.ms=900\n"
WRONG_USAGE = (
    *("", "describe --status", SERVER, f"{SERVER} {CONTROLLER} describe --status"),
    *(f"{SERVER} bogus", f"{SERVER} describe --bogus", f"{SERVER} describe bogus"),
    *(f"{SERVER} describe --statsu", f"{SERVER} add-controler"),
    *("describe --bogus", "remove-controller -i x"),
    *(f"bogus {SERVER}", f"{SERVER} add-controller --config x", "--bootstrap-server"),
    *("--bootstrap-server -x describe", f"--bootstrap {NOBODY} describe"),
    *(f"--command x {SERVER} bogus", f"{SERVER} remove-controller"),
    *(f"{SERVER} remove-controller -i 1", f"{SERVER} remove-controller -d x"),
    *(f"{SERVER} remove-controller -i", f"{SERVER} remove-controller -i x -d x"),
    *(f"{SERVER} remove-controller -i 99999999999 -d x", f"{SERVER} remove-controller -i '' -d x"),
)
WRONG_DIRECTORIES = (
    *("''", "a", "ab", "abc", "abcde", "ab=c", "ab==c", "ab=", "abc=", "abcd=", "=", "==", "!!!"),
    *("ab\u00e9", "ab\u20ac", "AAAAAAAAAAAAAAAAAAAAAA=", "a" * 24, "a" * 25),
)
WRONG_ADDRESSES = (
    *("''", ",", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:99999", "'a b:1'", "@x", f"{NOBODY},"),
    "no-such-host.invalid:1",
)
WRONG_VALUES = (
    *(f"{SERVER} describe", f"{SERVER} desc", f"--bootstrap-s {NOBODY} desc --repl --stat"),
    *(f"{SERVER} --bootstrap-server 127.0.0.1:2 describe", f"{SERVER} describe --human-readable"),
    *(f"{SERVER} describe --status --human-readable", f"{SERVER} describe --status --replication"),
    *(f"{SERVER} describe --status --replication --human-readable", f"{SERVER} add-controller"),
    *(f"{SERVER} add-controller --dry-run", f"--command-config DIR/none {SERVER} add-controller"),
    *(f"--command-config DIR {SERVER} describe --status", f"{SERVER} remove-controller -i -1 -d x"),
    f"{SERVER} remove-controller --controller-id=-1 -d {DIRECTORY} --dry-run",
    *(f"{SERVER} remove-controller -i 1 -d {text}" for text in WRONG_DIRECTORIES),
    *(f"--bootstrap-server {text} describe --status" for text in WRONG_ADDRESSES),
    *(f"--bootstrap-controller {text} describe --status" for text in WRONG_ADDRESSES),
)
DRY_RUNS = (
    f"-i 1 -d {DIRECTORY} --dry-run",
    f"-i1 -d{DIRECTORY} --dry",
    "-i +7 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAA== --dry-run",
)
WRONG_SETTINGS = (
    *("request.timeout.ms=x", "request.timeout.ms=-1", "default.api.timeout.ms=-1", "retries=-1"),
    *("request.timeout.ms=5000\ndefault.api.timeout.ms=1000", "retry.backoff.ms=soon"),
    *("retry.backoff.max.ms=-1", "socket.connection.setup.timeout.ms=-1", "client.dns.lookup=x"),
    *("security.protocol=FOO", "request.timeout.ms=\\u00zz"),
)


def compared(
    line: str, tools: ToolRunner, file: Path | None = None, settings: str = ""
) -> ToolResult:
    """Give both tools a command line, and a file of settings; return what both say."""
    arguments = shlex.split(line)
    if file is not None:
        file.write_text(settings)
        arguments = ["--command-config", str(file), *arguments]
    mine = run_ours(arguments)
    assert comparable(mine) == comparable(run_real(arguments, tools))
    return mine


@pytest.mark.parametrize("line", [*WRONG_USAGE, *WRONG_VALUES])
def test_mistakes_are_reported_alike(line: str, tmp_path: Path, kafka_tools: ToolRunner) -> None:
    assert compared(line.replace("DIR", str(tmp_path)), kafka_tools).exit_code == 1


@pytest.mark.parametrize("options", DRY_RUNS)
def test_a_dry_run_asks_no_node(options: str, kafka_tools: ToolRunner) -> None:
    assert compared(f"{SERVER} remove-controller {options}", kafka_tools).exit_code == 0


@pytest.mark.parametrize("settings", WRONG_SETTINGS)
def test_wrong_settings_are_reported_alike(
    settings: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    file = tmp_path / "client.properties"
    assert compared(f"{SERVER} describe", kafka_tools, file, settings).exit_code == 1


CONTROLLER_FILE = """
process.roles=controller
node.id=4
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs=DIR/data
"""
META = f"version=1\ncluster.id=c\nnode.id=4\ndirectory.id={DIRECTORY}\n"


def exit_code_of_adding(
    folder: Path, tools: ToolRunner, config: str = CONTROLLER_FILE, meta: str | None = META
) -> int:
    """Have both add a controller by its configuration and meta.properties."""
    (folder / "data").mkdir()
    if meta is not None:
        (folder / "data" / "meta.properties").write_text(meta)
    line = f"{SERVER} add-controller --dry-run"
    file = folder / "controller.properties"
    return compared(line, tools, file, config.replace("DIR", str(folder))).exit_code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("log.dirs", "advertised.listeners=CONTROLLER://example.org:1\nlog.dirs"),
        ("127.0.0.1", ""),
        ("127.0.0.1", "[::1]"),
        ("names=CONTROLLER", "names=controller"),
        (
            "CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=",
            "OTHER://h:5, CONTROLLER://127.0.0.1:9093\ncontroller.listener.names=CONTROLLER,OTHER,",
        ),
        ("log.dirs=", "log.dirs=/nowhere\nmetadata.log.dir="),
        ("/data", "/data,/x"),
    ],
)
def test_a_controllers_file_is_read_alike(
    old: str, new: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    assert exit_code_of_adding(tmp_path, kafka_tools, CONTROLLER_FILE.replace(old, new)) == 0


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("node.id=4", ""),
        ("node.id=4", "node.id=-4"),
        ("node.id=4", "node.id=x"),
        ("process.roles=controller", ""),
        ("process.roles=controller", "process.roles=broker"),
        ("log.dirs=DIR/data", ""),
        ("log.dirs=DIR/data", "log.dirs="),
        ("log.dirs=DIR/data", "log.dirs=,,"),
        ("controller.listener.names=CONTROLLER", ""),
        ("names=CONTROLLER", "names=OTHER"),
        ("names=CONTROLLER", "names="),
        ("names=CON", "names=CONTROLLER, CON"),
        ("listeners=CONTROLLER://127.0.0.1:9093", ""),
        ("CONTROLLER://127.0.0.1:9093", "CONTROLLER"),
        ("127.0.0.1:9093", "127.0.0.1:99999999999"),
    ],
)
def test_a_wrong_file_of_a_controller_is_refused_alike(
    old: str, new: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    assert exit_code_of_adding(tmp_path, kafka_tools, CONTROLLER_FILE.replace(old, new)) == 1


@pytest.mark.parametrize("meta", [None, "version=7\n", "version=1\ncluster.id=c\nnode.id=4\n"])
def test_a_directory_without_an_id_is_refused_alike(
    meta: str | None, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    assert exit_code_of_adding(tmp_path, kafka_tools, meta=meta) == 1


@pytest.mark.parametrize(
    "line",
    [
        f"--bootstrap-server {NOBODY} describe --status",
        f"--bootstrap-controller {NOBODY},localhost:2 describe --status",
        "--bootstrap-server localhost:1,[::1]:1 describe --replication",
        f"{SERVER} remove-controller -i 1 -d {DIRECTORY}",
        "--bootstrap-server SILENT describe --status",
        "--bootstrap-controller SILENT describe --replication",
    ],
)
def test_no_node_answers(line: str, silent: str, tmp_path: Path, kafka_tools: ToolRunner) -> None:
    file = tmp_path / "client.properties"
    file.write_text(IMPATIENT)
    arguments = ["--command-config", str(file), *line.replace("SILENT", silent).split()]
    mine, real = run_ours(arguments), run_real(arguments, kafka_tools)
    assert comparable(mine) == comparable(real)
    assert "TimeoutException: Timed out waiting for a node assignment" in mine.stderr
    if "SILENT" not in line:
        assert logged(mine) == logged(real)


DESCRIPTIONS = (
    "--bootstrap-server {broker} describe --status",
    "--bootstrap-controller {controller} describe --status",
    "--bootstrap-server {broker} describe --replication",
    "--bootstrap-controller {controller} describe --replication",
    "--bootstrap-server {broker} describe --replication --human-readable",
    "--bootstrap-controller {controller} describe --replication --human-readable",
    f"--bootstrap-server {NOBODY},{{broker}} describe --status",
    f"--bootstrap-controller {{controller}},{NOBODY} describe --status",
)
REFUSALS = (
    "--bootstrap-server {controller} describe --status",
    "--bootstrap-controller {broker} describe --status",
    "--bootstrap-controller {broker} describe --replication",
    f"--bootstrap-server {{broker}} remove-controller -i 1 -d {DIRECTORY}",
    f"--bootstrap-controller {{controller}} remove-controller -i 9 -d {DIRECTORY}",
    "--command-config {itself} --bootstrap-server {broker} add-controller",
    "--command-config {itself} --bootstrap-controller {controller} add-controller",
)


def filled_for(node: Node, line: str) -> list[str]:
    places = {"broker": node.address, "controller": node.controller, "itself": str(node.properties)}
    return line.format_map(places).split()


@pytest.fixture(params=["kvorum_node", "real_kafka"])
def node(request: pytest.FixtureRequest) -> Node:
    """A node of ours, then a real one."""
    found: Node = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("line", DESCRIPTIONS)
def test_a_quorum_is_described_alike(line: str, node: Node, kafka_tools: ToolRunner) -> None:
    filled = filled_for(node, line)
    mine, real = run_ours(filled), run_real(filled, kafka_tools)
    assert comparable(without_progress(mine)) == comparable(without_progress(real))
    assert mine.exit_code == 0, mine.stderr
    assert re.search(r"^LeaderId: +1$|^1 .*Leader", mine.stdout, re.MULTILINE)


def test_a_controller_describes_its_own_fetch_timeout_and_no_other(node: Node) -> None:
    settings = admin_settings({CONTROLLERS: node.controller}, warn=logging.warning)

    async def found() -> list[int | None]:
        async with AdminClient(settings, warn=logging.warning) as client:
            return [await client.call(fetch_timeout_call(node_id)) for node_id in (1, 2)]

    assert asyncio.run(found()) == [2000, None]


@pytest.mark.parametrize("line", REFUSALS)
def test_refusals_are_reported_alike(line: str, node: Node, kafka_tools: ToolRunner) -> None:
    filled = filled_for(node, line)
    mine = run_ours(filled)
    assert comparable(mine) == comparable(run_real(filled, kafka_tools))
    assert mine.exit_code == 1
    assert mine.stdout == ""


@pytest.mark.parametrize("line", [*DESCRIPTIONS, *REFUSALS])
def test_our_node_is_described_as_a_real_one(
    line: str, kvorum_node: Node, real_kafka: Node, kafka_tools: ToolRunner
) -> None:
    """But for the ids and addresses of the two nodes, and how far their logs have come."""
    told: list[ToolResult] = []
    for node in (kvorum_node, real_kafka):
        result = without_progress(comparable(run_real(filled_for(node, line), kafka_tools)))
        texts = (without_ids(text, node) for text in (result.stdout, result.stderr))
        told.append(ToolResult(result.exit_code, *texts))
    assert told[0] == told[1]


def without_ids(text: str, node: Node) -> str:
    text = text.replace(node.controller, "CONTROLLER")
    identities = load_java_properties((node.data / "meta.properties").read_bytes())
    text = text.replace(identities["directory.id"], "DIRECTORY")
    return re.sub(r"(?<=LeaderEpoch: )\d+", "N", text.replace(identities["cluster.id"], "CLUSTER"))


def test_error_codes_have_the_classes_of_kafkas_clients(java: Java) -> None:
    theirs = {tuple(line.split()) for line in java.answers("ErrorNames")}
    ours = {
        (str(int(code)), class_of(code), str(is_retriable(code)).lower())
        for code in ErrorCode
        if code is not ErrorCode.NONE
    }
    assert ours == theirs


DESCRIBE = ("describe", "--replication")
STATUS = ("describe", "--status")
REMOVE = ("remove-controller", "-i", "1", "-d", DIRECTORY)
ADD = ("add-controller",)
TOPIC = "__cluster_metadata"
ONCE = "retries=0\n"
"""Gives up where the default would go on until the time is up; the text is the same."""
FINAL = [code for code in ErrorCode if code != ErrorCode.NONE and not is_retriable(code)]
RETRIABLE = [code for code in ErrorCode if is_retriable(code)]


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    made = FakeServer()
    yield made
    made.close()


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a controller to add, which holds the client's settings too."""
    folder = tmp_path_factory.mktemp("controller")
    text = f"version=1\ncluster.id=c\nnode.id=4\ndirectory.id={DIRECTORY}\n"
    (folder / "meta.properties").write_text(text)
    file = folder / "controller.properties"
    file.write_text(
        f"process.roles=controller\nnode.id=4\nlog.dirs={folder}\n"
        "listeners=CONTROLLER://h:1\ncontroller.listener.names=CONTROLLER\n"
        f"request.timeout.ms=10000\n{ONCE}"
    )
    return file


def quorum_error(code: ErrorCode, message: str | None = None, *, leader_id: int = 1) -> Message:
    partition = DescribeQuorumResponse.PartitionData(
        error_code=code,
        error_message=message,
        leader_id=leader_id,
        current_voters=[DescribeQuorumResponse.ReplicaState(1)],
    )
    topics = [DescribeQuorumResponse.TopicData(TOPIC, [partition])]
    return DescribeQuorumResponse(topics=topics, error_message=None)


def both(
    server: FakeServer, settings: Path, tools: ToolRunner, *command: str, by: str = "server"
) -> ToolResult:
    """Run both tools, compare what they say, and return it."""
    arguments = ["--command-config", str(settings), f"--bootstrap-{by}", server.address, *command]
    mine, real = (
        _without_numbers(comparable(result))
        for result in (run_ours(arguments), run_real(arguments, tools))
    )
    assert mine == real
    return mine


def _without_numbers(result: ToolResult) -> ToolResult:
    """Hide times of the day, and which of a client's requests it was."""
    text = re.sub(r"\b\d{13}\b", "TIME", result.stderr)
    text = re.sub(r"(?<=correlation id )\d+", "N", text)
    return ToolResult(result.exit_code, result.stdout, text)


@pytest.mark.parametrize("code", [*FINAL, *RETRIABLE], ids=lambda code: code.name)
def test_each_error_of_a_description(
    code: ErrorCode, server: FakeServer, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(DescribeQuorum=quorum_error(code))
    told = both(server, settings, kafka_tools, *DESCRIBE)
    assert told.exit_code == 1
    assert ("timed out at TIME after 1 attempt(s)" in told.stderr) == (
        is_retriable(code) and code is not ErrorCode.REQUEST_TIMED_OUT
    )


@pytest.mark.parametrize("code", FINAL, ids=lambda code: code.name)
def test_each_error_of_a_change(
    code: ErrorCode, server: FakeServer, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(
        AddRaftVoter=AddRaftVoterResponse(error_code=code, error_message="because"),
        RemoveRaftVoter=RemoveRaftVoterResponse(error_code=code, error_message=None),
        DescribeCluster=DescribeClusterResponse(error_code=code, error_message=""),
    )
    for command in (ADD, REMOVE, STATUS):
        assert both(server, settings, kafka_tools, *command).exit_code == 1


@pytest.mark.parametrize(
    "code",
    [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT],
    ids=lambda code: code.name,
)
@pytest.mark.parametrize("by", ["server", "controller"])
def test_errors_that_depend_on_the_asked_node(
    code: ErrorCode, by: str, server: FakeServer, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(
        AddRaftVoter=AddRaftVoterResponse(error_code=code, error_message="because"),
        RemoveRaftVoter=RemoveRaftVoterResponse(error_code=code, error_message=None),
        DescribeCluster=server.node.described_cluster(),
        DescribeQuorum=quorum_error(code, "because"),
    )
    for command in (ADD, REMOVE, DESCRIBE):
        assert both(server, settings, kafka_tools, *command, by=by).exit_code == 1


def test_a_code_of_a_later_release(
    server: FakeServer, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(RemoveRaftVoter=RemoveRaftVoterResponse(error_code=999, error_message="new"))
    assert "UnknownServerException: new" in both(server, settings, kafka_tools, *REMOVE).stderr


@pytest.mark.parametrize(
    "answer",
    [
        DescribeQuorumResponse(error_message=None),
        DescribeQuorumResponse(error_code=ErrorCode.INVALID_REQUEST, error_message="no"),
        DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData("other")]),
        DescribeQuorumResponse(topics=[DescribeQuorumResponse.TopicData(TOPIC)]),
        DescribeQuorumResponse(
            topics=[
                DescribeQuorumResponse.TopicData(TOPIC, [DescribeQuorumResponse.PartitionData(5)])
            ]
        ),
        quorum_error(ErrorCode.NONE, leader_id=-1),
        quorum_error(ErrorCode.NONE, leader_id=7),
    ],
    ids=["empty", "refused", "other topic", "nothing", "other partition", "no leader", "no voter"],
)
def test_strange_descriptions(
    answer: Message, server: FakeServer, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(DescribeQuorum=answer)
    assert both(server, settings, kafka_tools, *DESCRIBE).exit_code == 1


def test_a_server_that_hangs_up(
    server: FakeServer, settings: Path, kafka_tools: ToolRunner
) -> None:
    server.answer(DescribeQuorum=None)
    told = both(server, settings, kafka_tools, *DESCRIBE)
    assert "DisconnectException: Cancelled describeMetadataQuorum request" in told.stderr


@pytest.mark.parametrize("by", ["server", "controller"])
def test_a_server_that_stops_answering(
    by: str, server: FakeServer, settings: Path, kafka_tools: ToolRunner, tmp_path: Path
) -> None:
    hasty = tmp_path / "hasty.properties"
    times = "request.timeout.ms=600\ndefault.api.timeout.ms=3000\n"
    hasty.write_text(f"{settings.read_text()}{times}")
    server.answer(DescribeQuorum=SILENCE, DescribeCluster=server.node.described_cluster())
    told = both(server, hasty, kafka_tools, *DESCRIBE, by=by)
    assert "DisconnectException: Cancelled describeMetadataQuorum request" in told.stderr
