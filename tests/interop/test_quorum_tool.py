"""``kvorum quorum`` says what kafka-metadata-quorum says, about the same clusters and mistakes."""

import asyncio
import logging
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.interop.quorum_tools import comparable, logged, run_ours, run_real, without_progress
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.node import Node

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.errors import class_of, is_retriable
from kvorum.cli.admin.reassignment_calls import fetch_timeout_call
from kvorum.cli.admin.settings import CONTROLLERS, admin_settings
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.wire.error_codes import ErrorCode

NOBODY = "127.0.0.1:1"
SERVER = ("--bootstrap-server", NOBODY)
CONTROLLER = ("--bootstrap-controller", NOBODY)
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
REMOVE = (*SERVER, "remove-controller")
STATUS = ("describe", "--status")
REPLICATION = ("describe", "--replication")
IMPATIENT = "request.timeout.ms=700\ndefault.api.timeout.ms=900\n"

WRONG_USAGE: tuple[tuple[str, ...], ...] = (
    (),
    STATUS,
    SERVER,
    (*SERVER, *CONTROLLER, *STATUS),
    (*SERVER, "bogus"),
    (*SERVER, "describe", "--bogus"),
    (*SERVER, "describe", "bogus"),
    (*SERVER, "describe", "--statsu"),
    (*SERVER, "add-controler"),
    (*SERVER, "describe", *SERVER),
    (*STATUS, *SERVER),
    ("describe", "--bogus"),
    ("remove-controller", "-i", "x"),
    ("bogus", *SERVER),
    (*SERVER, "add-controller", "--config", "x"),
    ("--bootstrap-server",),
    ("--bootstrap-server", "-x", "describe"),
    ("--bootstrap", NOBODY, "describe"),
    ("--command", "x", *SERVER, "bogus"),
    REMOVE,
    (*REMOVE, "-i", "1"),
    (*REMOVE, "-d", "x"),
    (*REMOVE, "-i"),
    (*REMOVE, "-i", "x", "-d", "x"),
    (*REMOVE, "-i", "99999999999", "-d", "x"),
    (*REMOVE, "-i", "", "-d", "x"),
)
WRONG_VALUES: tuple[tuple[str, ...], ...] = (
    (*SERVER, "describe"),
    (*SERVER, "desc"),
    ("--bootstrap-s", NOBODY, "desc", "--repl", "--stat"),
    (*SERVER, "--bootstrap-server", "127.0.0.1:2", "describe"),
    (*SERVER, "describe", "--human-readable"),
    (*SERVER, *STATUS, "--human-readable"),
    (*SERVER, *STATUS, "--replication"),
    (*SERVER, *STATUS, "--replication", "--human-readable"),
    (*SERVER, "add-controller"),
    (*SERVER, "add-controller", "--dry-run"),
    ("--command-config", "DIR/none", *SERVER, "add-controller"),
    ("--command-config", "DIR", *SERVER, *STATUS),
    (*REMOVE, "-i", "-1", "-d", "x"),
    (*REMOVE, "--controller-id=-1", "-d", DIRECTORY, "--dry-run"),
    *(
        (*REMOVE, "-i", "1", "-d", text)
        for text in (
            "",
            "a",
            "ab",
            "abc",
            "abcde",
            "ab=c",
            "ab==c",
            "ab=",
            "abc=",
            "abcd=",
            "=",
            "==",
            "!!!",
            "ab\u00e9",
            "ab\u20ac",
            "AAAAAAAAAAAAAAAAAAAAAA=",
            "a" * 24,
            "a" * 25,
        )
    ),
    *(
        (option, text, *STATUS)
        for option in ("--bootstrap-server", "--bootstrap-controller")
        for text in (
            "",
            ",",
            "127.0.0.1",
            "127.0.0.1:x",
            "127.0.0.1:99999",
            "a b:1",
            "@x",
            f"{NOBODY},",
            "no-such-host.invalid:1",
        )
    ),
)
DRY_RUNS: tuple[tuple[str, ...], ...] = (
    (*REMOVE, "-i", "1", "-d", DIRECTORY, "--dry-run"),
    (*REMOVE, "-i1", f"-d{DIRECTORY}", "--dry"),
    (*REMOVE, "-i", "+7", "--controller-directory-id", "AAAAAAAAAAAAAAAAAAAAAA==", "--dry-run"),
)
WRONG_SETTINGS = (
    "request.timeout.ms=x",
    "request.timeout.ms=-1",
    "request.timeout.ms=5000\ndefault.api.timeout.ms=1000",
    "default.api.timeout.ms=-1",
    "retries=-1",
    "retry.backoff.ms=soon",
    "retry.backoff.max.ms=-1",
    "socket.connection.setup.timeout.ms=-1",
    "client.dns.lookup=x",
    "security.protocol=FOO",
    "request.timeout.ms=\\u00zz",
)


@pytest.mark.parametrize("arguments", [*WRONG_USAGE, *WRONG_VALUES], ids=" ".join)
def test_mistakes_are_reported_alike(
    arguments: tuple[str, ...], tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    filled = [word.replace("DIR", str(tmp_path)) if "DIR" in word else word for word in arguments]
    mine = run_ours(filled)
    assert comparable(mine) == comparable(run_real(filled, kafka_tools))
    assert mine.exit_code == 1


@pytest.mark.parametrize("arguments", DRY_RUNS, ids=" ".join)
def test_a_dry_run_asks_no_node(arguments: tuple[str, ...], kafka_tools: ToolRunner) -> None:
    mine = run_ours(arguments)
    assert comparable(mine) == comparable(run_real(arguments, kafka_tools))
    assert mine.exit_code == 0


@pytest.mark.parametrize("settings", WRONG_SETTINGS)
def test_wrong_settings_are_reported_alike(
    settings: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(settings)
    arguments = ["--command-config", str(file), *SERVER, "describe"]
    mine = run_ours(arguments)
    assert comparable(mine) == comparable(run_real(arguments, kafka_tools))
    assert mine.exit_code == 1


CONTROLLER_FILE = """
process.roles=controller
node.id=4
listeners=CONTROLLER://127.0.0.1:9093
controller.listener.names=CONTROLLER
log.dirs=DIR/data
"""
META = f"version=1\ncluster.id=c\nnode.id=4\ndirectory.id={DIRECTORY}\n"


@dataclass(frozen=True, slots=True)
class Addition:
    """A controller's configuration file and meta.properties, and what becomes of adding it."""

    name: str
    config: str = CONTROLLER_FILE
    meta: str | None = META
    is_refused: bool = True


ADDITIONS = (
    Addition("plain", is_refused=False),
    Addition(
        "advertised",
        f"{CONTROLLER_FILE}advertised.listeners=CONTROLLER://example.org:1\n",
        is_refused=False,
    ),
    Addition("any host", CONTROLLER_FILE.replace("127.0.0.1", ""), is_refused=False),
    Addition("newer address", CONTROLLER_FILE.replace("127.0.0.1", "[::1]"), is_refused=False),
    Addition(
        "lower case", CONTROLLER_FILE.replace("names=CONTROLLER", "names=controller"), META, False
    ),
    Addition(
        "two listeners",
        CONTROLLER_FILE.replace("listeners=C", "listeners=OTHER://h:5, C")
        + "controller.listener.names=CONTROLLER,OTHER,CONTROLLER\n",
        is_refused=False,
    ),
    Addition(
        "metadata apart",
        CONTROLLER_FILE.replace("log.dirs=", "log.dirs=/nowhere\nmetadata.log.dir="),
        is_refused=False,
    ),
    Addition("two directories", CONTROLLER_FILE.replace("/data", "/data,/x"), is_refused=False),
    Addition("no id", CONTROLLER_FILE.replace("node.id=4", "")),
    Addition("negative id", CONTROLLER_FILE.replace("node.id=4", "node.id=-4")),
    Addition("no number", CONTROLLER_FILE.replace("node.id=4", "node.id=x")),
    Addition("no roles", CONTROLLER_FILE.replace("process.roles=controller", "")),
    Addition("broker", CONTROLLER_FILE.replace("process.roles=controller", "process.roles=broker")),
    Addition("no directory", CONTROLLER_FILE.replace("log.dirs=DIR/data", "")),
    Addition("empty directory", CONTROLLER_FILE.replace("log.dirs=DIR/data", "log.dirs=")),
    Addition("commas", CONTROLLER_FILE.replace("log.dirs=DIR/data", "log.dirs=,,")),
    Addition("no meta.properties", meta=None),
    Addition("spoilt meta.properties", meta="version=7\n"),
    Addition("no directory id", meta="version=1\ncluster.id=c\nnode.id=4\n"),
    Addition("no names", CONTROLLER_FILE.replace("controller.listener.names=CONTROLLER", "")),
    Addition("other name", CONTROLLER_FILE.replace("names=CONTROLLER", "names=OTHER")),
    Addition("empty name", CONTROLLER_FILE.replace("names=CONTROLLER", "names=")),
    Addition("name with blank", CONTROLLER_FILE.replace("names=CON", "names=CONTROLLER, CON")),
    Addition("no listener", CONTROLLER_FILE.replace("listeners=CONTROLLER://127.0.0.1:9093", "")),
    Addition("bad listener", CONTROLLER_FILE.replace("CONTROLLER://127.0.0.1:9093", "CONTROLLER")),
    Addition("bad port", CONTROLLER_FILE.replace("127.0.0.1:9093", "127.0.0.1:99999999999")),
)


@pytest.mark.parametrize("addition", ADDITIONS, ids=lambda addition: addition.name)
def test_a_controllers_file_is_read_alike(
    addition: Addition, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    file = tmp_path / "controller.properties"
    file.write_text(addition.config.replace("DIR", str(tmp_path)))
    (tmp_path / "data").mkdir()
    if addition.meta is not None:
        (tmp_path / "data" / "meta.properties").write_text(addition.meta)
    arguments = ["--command-config", str(file), *SERVER, "add-controller", "--dry-run"]
    mine = run_ours(arguments)
    assert comparable(mine) == comparable(run_real(arguments, kafka_tools))
    assert mine.exit_code == addition.is_refused


@pytest.mark.parametrize(
    "command",
    [
        ("--bootstrap-server", NOBODY, *STATUS),
        ("--bootstrap-controller", f"{NOBODY},localhost:2", *STATUS),
        ("--bootstrap-server", "localhost:1,[::1]:1", *REPLICATION),
        (*REMOVE, "-i", "1", "-d", DIRECTORY),
        ("--bootstrap-server", "SILENT", *STATUS),
        ("--bootstrap-controller", "SILENT", *REPLICATION),
    ],
    ids=" ".join,
)
def test_no_node_answers(
    command: tuple[str, ...], silent: str, tmp_path: Path, kafka_tools: ToolRunner
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(IMPATIENT)
    filled = [word.replace("SILENT", silent) for word in command]
    arguments = ["--command-config", str(file), *filled]
    mine, real = run_ours(arguments), run_real(arguments, kafka_tools)
    assert comparable(mine) == comparable(real)
    assert "TimeoutException: Timed out waiting for a node assignment" in mine.stderr
    if silent not in filled:
        assert logged(mine) == logged(real)


DESCRIPTIONS = (
    ("--bootstrap-server", "{broker}", *STATUS),
    ("--bootstrap-controller", "{controller}", *STATUS),
    ("--bootstrap-server", "{broker}", *REPLICATION),
    ("--bootstrap-controller", "{controller}", *REPLICATION),
    ("--bootstrap-server", "{broker}", *REPLICATION, "--human-readable"),
    ("--bootstrap-controller", "{controller}", *REPLICATION, "--human-readable"),
    ("--bootstrap-server", f"{NOBODY},{{broker}}", *STATUS),
    ("--bootstrap-controller", f"{{controller}},{NOBODY}", *STATUS),
)
REFUSALS = (
    ("--bootstrap-server", "{controller}", *STATUS),
    ("--bootstrap-controller", "{broker}", *STATUS),
    ("--bootstrap-controller", "{broker}", *REPLICATION),
    ("--bootstrap-server", "{broker}", "remove-controller", "-i", "1", "-d", DIRECTORY),
    ("--bootstrap-controller", "{controller}", "remove-controller", "-i", "9", "-d", DIRECTORY),
    ("--command-config", "{itself}", "--bootstrap-server", "{broker}", "add-controller"),
    ("--command-config", "{itself}", "--bootstrap-controller", "{controller}", "add-controller"),
)


def filled_for(node: Node, arguments: tuple[str, ...]) -> list[str]:
    places = {"broker": node.address, "controller": node.controller, "itself": str(node.properties)}
    return [word.format_map(places) for word in arguments]


@pytest.fixture(params=["kvorum_node", "real_kafka"])
def node(request: pytest.FixtureRequest) -> Node:
    """A node of ours, then a real one."""
    found: Node = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("arguments", DESCRIPTIONS, ids=" ".join)
def test_a_quorum_is_described_alike(
    arguments: tuple[str, ...], node: Node, kafka_tools: ToolRunner
) -> None:
    filled = filled_for(node, arguments)
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


@pytest.mark.parametrize("arguments", REFUSALS, ids=" ".join)
def test_refusals_are_reported_alike(
    arguments: tuple[str, ...], node: Node, kafka_tools: ToolRunner
) -> None:
    filled = filled_for(node, arguments)
    mine = run_ours(filled)
    assert comparable(mine) == comparable(run_real(filled, kafka_tools))
    assert mine.exit_code == 1
    assert mine.stdout == ""


@pytest.mark.parametrize("arguments", [*DESCRIPTIONS, *REFUSALS], ids=" ".join)
def test_our_node_is_described_as_a_real_one(
    arguments: tuple[str, ...], kvorum_node: Node, real_kafka: Node, kafka_tools: ToolRunner
) -> None:
    """But for the ids and addresses of the two nodes, and how far their logs have come."""
    told: list[ToolResult] = []
    for node in (kvorum_node, real_kafka):
        result = without_progress(comparable(run_real(filled_for(node, arguments), kafka_tools)))
        told.append(
            ToolResult(
                result.exit_code, without_ids(result.stdout, node), without_ids(result.stderr, node)
            )
        )
    assert told[0] == told[1]


def without_ids(text: str, node: Node) -> str:
    text = text.replace(node.controller, "CONTROLLER")
    identities = load_java_properties((node.data / "meta.properties").read_bytes())
    text = text.replace(identities["directory.id"], "DIRECTORY")
    text = text.replace(identities["cluster.id"], "CLUSTER")
    return re.sub(r"(?<=LeaderEpoch: )\d+", "N", text)


def test_error_codes_have_the_classes_of_kafkas_clients(java: Java) -> None:
    theirs = {tuple(line.split()) for line in java.answers("ErrorNames")}
    ours = {
        (str(int(code)), class_of(code), str(is_retriable(code)).lower())
        for code in ErrorCode
        if code is not ErrorCode.NONE
    }
    assert ours == theirs
