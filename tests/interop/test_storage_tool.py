"""``kvorum storage`` and kafka-storage, given the same command lines and the same directories."""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.interop.quorum_tools import with_levels_of_ours_mapped
from tests.support.kafka.java import Java, ToolResult, ToolRunner
from tests.support.node import FEATURES_SERVED_IN_PART, Node

from kvorum.cli.storage import main
from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    MetadataVersion,
    metadata_version_from_level,
    metadata_version_from_text,
)
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.wire.uuid_text import uuid_from_text

CLUSTER = "3Db5QLSqSZieL3rJBUUegA"
DIRECTORY = "JEXY6aqzQY-32P5TStzaFg"
OTHER_DIRECTORY = "MvDxzVmcRsaTz33bUuRU6A"
VOTERS = f"1@localhost:9093:{DIRECTORY},2@[::1]:9094:{OTHER_DIRECTORY}"
OTHER_VOTERS = f"2@h:1:{DIRECTORY}"
SALT = "bG9uZyBzYWx0"
SCRAM = f"'SCRAM-SHA-256=[name=alice,salt=\"{SALT}\",password=alice-secret]'"
SCRAM_512 = f'\'SCRAM-SHA-512=[name=bob,iterations=8192,salt="{SALT}",saltedpassword="YCE="]\''

BOTH = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:9093
log.dirs=DIR/a
"""
CONFIGS = {
    "two directories": BOTH.replace("DIR/a", "DIR/a,DIR/b"),
    "metadata apart": BOTH + "metadata.log.dir=DIR/m\n",
    "three directories": BOTH.replace("DIR/a", "DIR/a,DIR/b") + "metadata.log.dir=DIR/m",
    "static": BOTH.replace("bootstrap.servers=localhost", "voters=1@localhost"),
    "broker": BOTH.replace(",controller\n", "\n").replace(",CONTROLLER://localhost:9093", ""),
    "unstable": BOTH + "unstable.feature.versions.enable=true\n",
    "tls": BOTH + "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:SSL\n",
    "any host": BOTH.replace("CONTROLLER://localhost", "CONTROLLER://"),
    "bad": BOTH + "num.partitions=0\n",
    "bad listeners": BOTH + "advertised.listeners=PLAINTEXT://0.0.0.0:1\n",
}
FORMAT = f"format -c CONFIG -t {CLUSTER}"
INFO = "info -c CONFIG"
WRONG_SCRAM = (
    *("foo", "SCRAM-MD5=[name=a]", "SCRAM-SHA-256=name=a", "SCRAM-SHA-256=[name=a"),
    *("SCRAM-SHA-256=[]", "SCRAM-SHA-256=[password=a]", "SCRAM-SHA-256=[name=a]"),
    "SCRAM-SHA-256=[name=a,saltedpassword=YCE=]",
    "SCRAM-SHA-256=[name=a,password=p,salt=%]",
    "SCRAM-SHA-256=[name=a,salt=YCE=,saltedpassword=%]",
    "SCRAM-SHA-256=[name=a,password=p,iterations=x]",
    "SCRAM-SHA-256=[name=a,password=p,iterations=4095]",
    "SCRAM-SHA-512=[name=a,password=p,iterations=16385]",
    "SCRAM-SHA-256=[name=a,password=p,foo=b,bar=c]",
)
WRONG_VOTERS = (
    *("''", "1", "@h:1:x", "x@h:1:x", "-1@h:1:x", "1@", "1@[h:1:x", "1@h", "1@[::1]x", "1@h:1"),
    *("1@h:x:x", "1@h:65536:x", "1@h:1:x", f"1@h:1:{DIRECTORY},1@h:2:{DIRECTORY}"),
)
LINES = (
    f"{FORMAT} --standalone; {INFO}; {FORMAT}; {FORMAT} -s",
    f"{FORMAT} -s; {FORMAT} -s --ignore-formatted; {INFO}",
    f"{FORMAT} -s; format -c CONFIG -t zzz -s -g",
    f"{FORMAT} -I {OTHER_VOTERS}",
    f"{FORMAT} -s -S {SCRAM} --add-scram {SCRAM_512}",
    f"{FORMAT} -s -r 3.9",
    f"{FORMAT} -N --release-version 3.3-IV3",
    f"{FORMAT} -s -f metadata.version=24 -f group.version=0",
    FORMAT,
    f"{FORMAT} -s -f kraft.version=0",
    f"{FORMAT} -s -r 4.4-IV0",
    f"{FORMAT} -s -f metadata.version=31",
    f"{FORMAT} -s -r 2.8",
    f"{FORMAT} -s -f metadata.version=99",
    f"{FORMAT} -s -r 4.0 -f metadata.version=25",
    f"{FORMAT} -s -f foo.version=1",
    f"{FORMAT} -s -f group.version=9",
    f"{FORMAT} -s -r 3.9 -f eligible.leader.replicas.version=1",
    f"{FORMAT} -s -f foo",
    f"{FORMAT} -s -f foo=x",
    f"{FORMAT} -s -r 3.5-IV1 -S {SCRAM}",
    *(f"{FORMAT} -s -S {text}" for text in WRONG_SCRAM),
    *(f"{FORMAT} -I {text}" for text in WRONG_VOTERS),
    INFO,
    *("version-mapping", "version-mapping --release-version 3.9.1", "version-mapping -r 4.4-IV0"),
    "version-mapping -r 2.8",
    "feature-dependencies -f metadata.version=30 --feature group.version=1",
    "feature-dependencies -f eligible.leader.replicas.version=1 -f bogus=1",
    *("feature-dependencies -f metadata.version=99", "feature-dependencies -f group.version=9"),
    *("feature-dependencies -f group.version=x", "feature-dependencies -f foo"),
    *("", "bogus", "info", "info -c", "format -c x", "format -t x", "format -t x -c x -s -N"),
    *("format -t x -c x --feature", "info -c x --bogus", "random-uuid extra"),
    *("feature-dependencies", "version-m", "info --conf CONFIG"),
)
SPOILT = {"a/meta.properties": "version=7\n"}
LEGACY = {"a/meta.properties": "broker.id=1\ncluster.id=x\n"}
TWO_CLUSTERS = {
    "a/meta.properties": "version=1\ncluster.id=x\nnode.id=1\n",
    "b/meta.properties": "version=1\ncluster.id=y\nnode.id=1\n",
    "m/meta.properties": "version=1\ncluster.id=x\nnode.id=2\n",
}


def prepared(folder: Path, config: str, files: Mapping[str, str]) -> Path:
    """Return a folder with the configuration, and with files that are there already."""
    for name, text in {"server.properties": config.replace("DIR", str(folder)), **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def filled(line: str, folder: Path) -> list[str]:
    return shlex.split(line.replace("CONFIG", str(folder / "server.properties")))


def run_ours(line: str, folder: Path, capture: pytest.CaptureFixture[str]) -> ToolResult:
    capture.readouterr()
    code = main(filled(line, folder))
    printed = capture.readouterr()
    return ToolResult(code, printed.out, printed.err)


def with_levels_of_ours(words: list[str]) -> list[str]:
    """Have Kafka's tool give the levels that ours gives at most, unless a level is asked for."""
    if words[:1] != ["format"]:
        return words
    named = {word.partition("=")[0] for word in words}
    metadata_version = _metadata_version(words)
    levels = [
        ("-f", f"{name}={feature.default_level(metadata_version)}")
        for name, feature in FEATURES_SERVED_IN_PART.items()
        if name not in named
    ]
    return [*words, *(word for level in levels for word in level)]


def _metadata_version(words: list[str]) -> MetadataVersion:
    """Return the version that is asked for; the latest one for none, and for what is none."""
    for option, word in pairwise(words):
        try:
            if option in {"-r", "--release-version"}:
                return metadata_version_from_text(word)
            if option in {"-f", "--feature"} and word.startswith("metadata.version="):
                return metadata_version_from_level(int(word.partition("=")[2]))
        except UnknownFeatureError:
            break
    return LATEST_PRODUCTION_METADATA_VERSION


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


@dataclass(frozen=True)
class BothTools:
    """Runs both tools, each in a folder of its own."""

    folder: Path
    tools: ToolRunner
    capture: pytest.CaptureFixture[str]

    def run(
        self, lines: str, config: str = BOTH, files: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Path, Path]:
        """Give both the command lines, compare what they say and do; return the two folders."""
        ours, theirs = (prepared(self.folder / name, config, files) for name in ("ours", "theirs"))
        for line in lines.split("; "):
            mine = run_ours(line, ours, self.capture)
            real = self.tools.run("kafka-storage", *with_levels_of_ours(filled(line, theirs)))
            said = with_levels_of_ours_mapped(line, real.stdout)
            assert plain_stdout(mine.stdout, ours) == plain_stdout(said, theirs), line
            assert complaint(mine.stderr, ours) == complaint(real.stderr, theirs), line
            assert mine.exit_code == real.exit_code, line
        assert plain_files(ours) == plain_files(theirs)
        return ours, theirs


@pytest.fixture
def both(tmp_path: Path, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]) -> BothTools:
    return BothTools(tmp_path, kafka_tools, capsys)


@pytest.mark.parametrize("lines", LINES)
def test_both_tools_say_and_do_the_same(both: BothTools, lines: str) -> None:
    both.run(lines)


@pytest.mark.parametrize(
    ("config", "lines"),
    [
        ("two directories", f"{FORMAT} -N; {INFO}"),
        ("metadata apart", f"{FORMAT} -I {VOTERS}; {INFO}"),
        ("static", f"{FORMAT}; {INFO}"),
        ("static", f"{FORMAT} -s"),
        ("static", f"{FORMAT} -I {VOTERS}"),
        ("static", f"{FORMAT} -f kraft.version=1"),
        ("broker", f"{FORMAT}; {INFO}"),
        ("broker", f"{FORMAT} -s"),
        ("any host", f"{FORMAT} -s"),
        ("tls", f"{FORMAT} -s; {INFO}"),
        ("unstable", f"{FORMAT} -s"),
        ("unstable", f"{FORMAT} -s -r 4.4-IV0"),
        ("bad", INFO),
        ("bad listeners", FORMAT),
    ],
)
def test_both_tools_go_by_the_configuration(both: BothTools, config: str, lines: str) -> None:
    both.run(lines, CONFIGS[config])


@pytest.mark.parametrize(
    ("files", "config", "line"),
    [
        (SPOILT, BOTH, INFO),
        (SPOILT, BOTH, f"{FORMAT} -s"),
        (LEGACY, BOTH, INFO),
        ({"a": ""}, BOTH, INFO),
        (TWO_CLUSTERS, CONFIGS["three directories"], INFO),
        (TWO_CLUSTERS, CONFIGS["two directories"], f"{FORMAT} -s -g"),
    ],
    ids=["spoilt", "format spoilt", "legacy", "file", "two clusters", "format two clusters"],
)
def test_both_tools_meet_what_is_there_alike(
    both: BothTools, files: Mapping[str, str], config: str, line: str
) -> None:
    both.run(line, config, files)


def test_help_is_printed_and_all_is_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["format", "-h"]) == 0
    assert "--initial-controllers" in capsys.readouterr().out


def test_a_uuid_has_kafkas_form(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random-uuid"]) == 0
    assert re.fullmatch(r"[\w][\w-]{21}\n", capsys.readouterr().out)


BOOTSTRAP_SNAPSHOT = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"


def dumped(tools: ToolRunner, folder: Path) -> list[str]:
    """Return what Kafka's tool shows of the bootstrap snapshot."""
    text = tools.dumped(folder / "a" / BOOTSTRAP_SNAPSHOT, "--cluster-metadata-decoder")
    clock = r"(CreateTime|crc|baseTimestamp|lastContainedLogTimestamp\"?):? ?\d+"
    return re.sub(clock, r"\1", text).splitlines()[1:]


def test_real_dump_log_reads_what_we_write(both: BothTools) -> None:
    ours, theirs = both.run(f"{FORMAT} -I {VOTERS} -S {SCRAM}")
    mine = dumped(both.tools, ours)
    assert mine == dumped(both.tools, theirs)
    assert len(mine) > 7


def test_each_tool_reads_the_others_directories(both: BothTools) -> None:
    for folder in both.run(f"{FORMAT} -s", CONFIGS["two directories"]):
        mine = run_ours(INFO, folder, both.capture)
        assert mine == both.tools.run("kafka-storage", *filled(INFO, folder))
        assert mine.exit_code == 0
        assert f"cluster.id={CLUSTER}" in mine.stdout


@pytest.mark.slow
def test_a_real_node_starts_on_what_we_formatted(
    tmp_path: Path, java: Java, kafka_tools: ToolRunner, capsys: pytest.CaptureFixture[str]
) -> None:
    node = Node(tmp_path, java=java)
    assert main(shlex.split(f"format -c {node.properties} -t {CLUSTER} -s -S {SCRAM}")) == 0
    capsys.readouterr()
    with node:
        server = ("--bootstrap-server", node.address)
        assert CLUSTER in kafka_tools.run("kafka-cluster", "cluster-id", *server).stdout
        status = kafka_tools.run("kafka-metadata-quorum", *server, "describe", "--status")
        assert re.search(r"CurrentVoters:.*\"id\": 1", status.stdout)
        users = kafka_tools.run("kafka-configs", *server, "--describe", "--entity-type", "users")
        assert "alice" in users.stdout
