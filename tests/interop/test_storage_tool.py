"""``kvorum storage`` and kafka-storage, given the same command lines and the same directories."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.kafka.java import Java
from tests.support.kafka.tools import ToolResult, ToolRunner
from tests.support.node import Node

from kvorum.cli.storage import main
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.wire.uuid_text import uuid_from_text

CLUSTER = "3Db5QLSqSZieL3rJBUUegA"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER_DIRECTORY = "MvDxzVmcRsaTz33bUuRU6A"
VOTERS = f"1@localhost:9093:{DIRECTORY},2@[::1]:9094:{OTHER_DIRECTORY}"
OTHER_VOTERS = f"2@h:1:{DIRECTORY}"
SALT = "bG9uZyBzYWx0"
SCRAM = f'SCRAM-SHA-256=[name=alice,salt="{SALT}",password=alice-secret]'
SCRAM_512 = f'SCRAM-SHA-512=[name=bob,iterations=8192,salt="{SALT}",saltedpassword="YCE="]'

BOTH = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:9093
log.dirs=DIR/a
"""
TWO_DIRECTORIES = BOTH.replace("DIR/a", "DIR/a,DIR/b")
METADATA_APART = BOTH + "metadata.log.dir=DIR/m\n"
STATIC = BOTH.replace("bootstrap.servers=localhost", "voters=1@localhost")
BROKER = BOTH.replace("broker,controller", "broker").replace(",CONTROLLER://localhost:9093", "")
UNSTABLE = BOTH + "unstable.feature.versions.enable=true\n"
WITH_SSL = BOTH + "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:SSL\n"
ANY_HOST = BOTH.replace("CONTROLLER://localhost", "CONTROLLER://")

FORMAT = ("format", "-c", "CONFIG", "-t", CLUSTER)
INFO = ("info", "-c", "CONFIG")


@dataclass(frozen=True, slots=True)
class Case:
    """Command lines that are run one after the other on one configuration."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    config: str = BOTH
    spoil: Callable[[Path], object] = field(default=lambda _: None)


def refused(name: str, *options: str, config: str = BOTH) -> Case:
    return Case(name, ((*FORMAT, *options),), config)


def spoil_directory(directory: Path) -> None:
    (directory / "a").mkdir(parents=True)
    (directory / "a" / "meta.properties").write_text("version=7\n")


def legacy_directory(directory: Path) -> None:
    (directory / "a").mkdir(parents=True)
    (directory / "a" / "meta.properties").write_text("broker.id=1\ncluster.id=x\n")


def file_instead(directory: Path) -> None:
    (directory / "a").write_text("")


def two_clusters(directory: Path) -> None:
    for name, cluster, node in (("a", "x", 1), ("b", "y", 1), ("m", "x", 2)):
        (directory / name).mkdir(parents=True)
        text = f"version=1\ncluster.id={cluster}\nnode.id={node}\n"
        (directory / name / "meta.properties").write_text(text)


CASES = (
    Case("standalone", ((*FORMAT, "--standalone"), INFO, FORMAT, (*FORMAT, "-s"))),
    Case("twice", ((*FORMAT, "-s"), (*FORMAT, "-s", "--ignore-formatted"), INFO)),
    Case("another cluster", ((*FORMAT, "-s"), ("format", "-c", "CONFIG", "-t", "zzz", "-s", "-g"))),
    Case("two directories", ((*FORMAT, "-N"), INFO), TWO_DIRECTORIES),
    Case("metadata apart", ((*FORMAT, "-I", VOTERS), INFO), METADATA_APART),
    Case("voters without this node", ((*FORMAT, "-I", OTHER_VOTERS),)),
    Case("static quorum", ((*FORMAT,), INFO), STATIC),
    Case("broker", ((*FORMAT,), INFO), BROKER),
    Case("broker as standalone", ((*FORMAT, "-s"),), BROKER),
    Case("any host", ((*FORMAT, "-s"),), ANY_HOST),
    Case("listeners with TLS", ((*FORMAT, "-s"), INFO), WITH_SSL),
    Case("scram", ((*FORMAT, "-s", "-S", SCRAM, "--add-scram", SCRAM_512),)),
    Case("older release", ((*FORMAT, "-s", "-r", "3.9"),)),
    Case("oldest release", ((*FORMAT, "-N", "--release-version", "3.3-IV3"),)),
    Case("levels", ((*FORMAT, "-s", "-f", "metadata.version=24", "-f", "group.version=0"),)),
    Case("unstable", ((*FORMAT, "-s"),), UNSTABLE),
    Case("unstable release", ((*FORMAT, "-s", "-r", "4.4-IV0"),), UNSTABLE),
    refused("nothing said about the quorum"),
    refused("static and standalone", "-s", config=STATIC),
    refused("static and voters", "-I", VOTERS, config=STATIC),
    refused("static and kraft.version 1", "-f", "kraft.version=1", config=STATIC),
    refused("dynamic and kraft.version 0", "-s", "-f", "kraft.version=0"),
    refused("unstable refused", "-s", "-r", "4.4-IV0"),
    refused("unstable level refused", "-s", "-f", "metadata.version=31"),
    refused("unknown release", "-s", "-r", "2.8"),
    refused("unknown level", "-s", "-f", "metadata.version=99"),
    refused("two ways", "-s", "-r", "4.0", "-f", "metadata.version=25"),
    refused("unknown feature", "-s", "-f", "foo.version=1"),
    refused("unknown feature level", "-s", "-f", "group.version=9"),
    refused("missing dependency", "-s", "-r", "3.9", "-f", "eligible.leader.replicas.version=1"),
    refused("no equals sign", "-s", "-f", "foo"),
    refused("no number", "-s", "-f", "foo=x"),
    refused("scram too early", "-s", "-r", "3.5-IV1", "-S", SCRAM),
    *(
        refused(f"scram {text}", "-s", "-S", text)
        for text in (
            "foo",
            "SCRAM-MD5=[name=a]",
            "SCRAM-SHA-256=name=a",
            "SCRAM-SHA-256=[name=a",
            "SCRAM-SHA-256=[]",
            "SCRAM-SHA-256=[password=a]",
            "SCRAM-SHA-256=[name=a]",
            "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
            "SCRAM-SHA-256=[name=a,password=p,salt=%]",
            "SCRAM-SHA-256=[name=a,salt=YCE=,saltedpassword=%]",
            "SCRAM-SHA-256=[name=a,password=p,iterations=x]",
            "SCRAM-SHA-256=[name=a,password=p,iterations=4095]",
            "SCRAM-SHA-512=[name=a,password=p,iterations=16385]",
            "SCRAM-SHA-256=[name=a,password=p,foo=b,bar=c]",
        )
    ),
    *(
        refused(f"voters {text}", "-I", text)
        for text in (
            "",
            "1",
            "@h:1:x",
            "x@h:1:x",
            "-1@h:1:x",
            "1@",
            "1@[h:1:x",
            "1@h",
            "1@[::1]x",
            "1@h:1",
            "1@h:x:x",
            "1@h:65536:x",
            "1@h:1:x",
            f"1@h:1:{DIRECTORY},1@h:2:{DIRECTORY}",
        )
    ),
    Case("info before format", (INFO,)),
    Case("info of a spoilt file", (INFO,), spoil=spoil_directory),
    Case("format over a spoilt file", ((*FORMAT, "-s"),), spoil=spoil_directory),
    Case("info of a legacy node", (INFO,), spoil=legacy_directory),
    Case("info of a file", (INFO,), spoil=file_instead),
    Case("info of two clusters", (INFO,), TWO_DIRECTORIES + "metadata.log.dir=DIR/m", two_clusters),
    Case("format of two clusters", ((*FORMAT, "-s", "-g"),), TWO_DIRECTORIES, two_clusters),
    Case("bad config", (INFO,), BOTH + "num.partitions=0\n"),
    Case("bad listeners", (FORMAT,), BOTH + "advertised.listeners=PLAINTEXT://0.0.0.0:1\n"),
    Case(
        "tables",
        (
            ("version-mapping",),
            ("version-mapping", "--release-version", "3.9.1"),
            ("version-mapping", "-r", "4.4-IV0"),
            ("version-mapping", "-r", "2.8"),
            ("feature-dependencies", "-f", "metadata.version=30", "--feature", "group.version=1"),
            ("feature-dependencies", "-f", "eligible.leader.replicas.version=1", "-f", "bogus=1"),
            ("feature-dependencies", "-f", "metadata.version=99"),
            ("feature-dependencies", "-f", "group.version=9"),
            ("feature-dependencies", "-f", "group.version=x"),
            ("feature-dependencies", "-f", "foo"),
        ),
    ),
    Case(
        "wrong usage",
        (
            (),
            ("bogus",),
            ("info",),
            ("info", "-c"),
            ("format", "-c", "x"),
            ("format", "-t", "x"),
            ("format", "-t", "x", "-c", "x", "-s", "-N"),
            ("format", "-t", "x", "-c", "x", "--feature"),
            ("info", "-c", "x", "--bogus"),
            ("random-uuid", "extra"),
            ("feature-dependencies",),
            ("version-m",),
            ("info", "--conf", "CONFIG"),
        ),
    ),
)


def prepared(folder: Path, case: Case) -> Path:
    folder.mkdir()
    (folder / "server.properties").write_text(case.config.replace("DIR", str(folder)))
    case.spoil(folder)
    return folder


def filled(command: tuple[str, ...], folder: Path) -> list[str]:
    config = str(folder / "server.properties")
    return [
        word.replace("CONFIG", config).replace("DIR/", f"{folder}/")
        if word not in {CLUSTER, DIRECTORY}
        else word
        for word in command
    ]


def run_ours(
    command: tuple[str, ...], folder: Path, capture: pytest.CaptureFixture[str]
) -> ToolResult:
    capture.readouterr()
    code = main(filled(command, folder))
    printed = capture.readouterr()
    return ToolResult(code, printed.out, printed.err)


def plain_stdout(text: str, folder: Path) -> list[str]:
    """Name the folder DIR, hide ids drawn by chance, and sort what Kafka leaves unordered."""
    text = text.replace(str(folder), "DIR")
    text = re.sub(r"directory\.id=[\w-]{22}", "directory.id=ID", text)
    lines = [line for line in text.splitlines() if not line.startswith(("\tat ", "java.lang."))]
    formatting = sorted(line for line in lines if line.startswith("Formatting "))
    return [line for line in lines if line not in formatting] + formatting


def complaint(text: str, folder: Path) -> str:
    """The one line that says what is wrong: of a stack trace its message, of usage its end."""
    text = text.replace(str(folder), "DIR")
    if "usage: " in text:
        return " ".join(text[text.index(" error:") :].split())
    lines = [line for line in text.splitlines() if not re.match(r"\[\d{4}-", line)]
    if lines and not lines[-1].startswith("\t"):
        # A terse failure comes last, behind whatever was logged.
        return lines[-1]
    first = lines[0] if lines else ""
    first = re.sub(r"^(Exception in thread \"main\" )?[a-z][\w.]*\.[A-Z]\w+(: |$)", "", first)
    return first.removeprefix("requirement failed: ")


def without_clock(data: bytes, *, is_voters_checkpoint: bool) -> bytes:
    """Blank the checksum and the times of every batch, and the time in a snapshot's header."""
    masked = bytearray(data)
    position = 0
    while position < len(masked):
        masked[position + 17 : position + 21] = bytes(4)
        masked[position + 27 : position + 43] = bytes(16)
        position += 12 + int.from_bytes(masked[position + 8 : position + 12])
    if is_voters_checkpoint:
        masked[73:81] = bytes(8)
    return bytes(masked)


def plain_files(folder: Path) -> dict[str, object]:
    """Every file with its rights, without what is left to chance or to the clock."""
    found: dict[str, object] = {}
    drawn: list[bytes] = []
    for path in sorted(folder.rglob("meta.properties")):
        properties = load_java_properties(path.read_bytes())
        directory_id = properties.get("directory.id", "")
        if directory_id not in {"", DIRECTORY, OTHER_DIRECTORY}:
            drawn.append(uuid_from_text(directory_id))
            properties["directory.id"] = "drawn"
        found[str(path.relative_to(folder))] = (path.stat().st_mode, properties)
    for path in sorted(folder.rglob("*")):
        content: bytes | None = None
        if path.suffix == ".checkpoint":
            is_voters = path.parent.name == "__cluster_metadata-0"
            content = without_clock(path.read_bytes(), is_voters_checkpoint=is_voters)
            for each in drawn:
                content = content.replace(each, b"drawn")
        name = str(path.relative_to(folder))
        found.setdefault(name, (path.stat().st_mode, content))
    return found


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_both_tools_say_and_do_the_same(
    case: Case, tmp_path: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = prepared(tmp_path / "ours", case), prepared(tmp_path / "theirs", case)
    for command in case.commands:
        mine = run_ours(command, ours, capsys)
        real = kafka_tools.run("kafka-storage", *filled(command, theirs))
        assert plain_stdout(mine.stdout, ours) == plain_stdout(real.stdout, theirs), command
        assert complaint(mine.stderr, ours) == complaint(real.stderr, theirs), command
        assert mine.exit_code == real.exit_code, command
    assert plain_files(ours) == plain_files(theirs)


def test_help_is_printed_and_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", "-h"]) == 0
    assert "--initial-controllers" in capsys.readouterr().out


def test_a_uuid_has_kafkas_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    assert re.fullmatch(r"[\w][\w-]{21}\n", capsys.readouterr().out)


BOOTSTRAP_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def dumped(tools: ToolRunner, file: Path, *options: str) -> list[str]:
    done = tools.run("kafka-dump-log", "--files", str(file), *options)
    assert done.exit_code == 0
    assert done.stderr == ""
    clock = r"(CreateTime|crc|baseTimestamp|lastContainedLogTimestamp\"?):? ?\d+"
    return re.sub(clock, r"\1", done.stdout).splitlines()[1:]


def test_real_dump_log_reads_what_we_write(
    tmp_path: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case("", ((*FORMAT, "-I", VOTERS, "-S", SCRAM),))
    ours, theirs = prepared(tmp_path / "ours", case), prepared(tmp_path / "theirs", case)
    run_ours(case.commands[0], ours, capsys)
    kafka_tools.run("kafka-storage", *filled(case.commands[0], theirs))
    decoder = "--cluster-metadata-decoder"
    mine = dumped(kafka_tools, ours / "a" / BOOTSTRAP_SNAPSHOT, decoder)
    assert mine == dumped(kafka_tools, theirs / "a" / BOOTSTRAP_SNAPSHOT, decoder)
    assert len(mine) > 7


def test_each_tool_reads_the_others_directories(
    tmp_path: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    case = Case("", ((*FORMAT, "-s"),), TWO_DIRECTORIES)
    ours, theirs = prepared(tmp_path / "ours", case), prepared(tmp_path / "theirs", case)
    run_ours(case.commands[0], ours, capsys)
    kafka_tools.run("kafka-storage", *filled(case.commands[0], theirs))
    for folder in (ours, theirs):
        mine = run_ours(INFO, folder, capsys)
        assert mine == kafka_tools.run("kafka-storage", *filled(INFO, folder))
        assert mine.exit_code == 0
        assert f"cluster.id={CLUSTER}" in mine.stdout


@pytest.mark.slow
def test_a_real_node_starts_on_what_we_formatted(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Node(tmp_path, java=java)
    arguments = ["format", "-c", str(node.properties), "-t", CLUSTER, "-s", "-S", SCRAM]
    assert main(arguments) == 0
    capsys.readouterr()
    with node:
        server = ("--bootstrap-server", node.address)
        cluster = kafka_tools.run("kafka-cluster", "cluster-id", *server)
        assert CLUSTER in cluster.stdout
        status = kafka_tools.run("kafka-metadata-quorum", *server, "describe", "--status")
        assert re.search(r"CurrentVoters:.*\"id\": 1", status.stdout)
        users = kafka_tools.run("kafka-configs", *server, "--describe", "--entity-type", "users")
        assert "alice" in users.stdout
