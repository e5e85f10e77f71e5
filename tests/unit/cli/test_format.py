"""Formatting directories: files, credentials, bootstrap records, refusals, and disks that fail."""

import base64
import errno
import random
import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.cli import main as kvorum
from kvorum.cli.storage import main
from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MetadataVersion,
)
from kvorum.metadata.record_frame import encode_record
from kvorum.node.config import NodeConfig
from kvorum.node.directories import open_directories
from kvorum.node.format import (
    DynamicVoter,
    FormatError,
    FormatRequest,
    format_directories,
    parse_dynamic_voter,
    parse_dynamic_voters,
)
from kvorum.node.format.dynamic_voters import voters_record
from kvorum.node.format.scram import parse_scram_credential
from kvorum.storage.files import RealFileSystem
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.meta_properties import read_meta_properties
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.voters_record import VotersRecord
from kvorum.wire.records import decode_control_record, read_batches

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
VOTERS = parse_dynamic_voters("1@localhost:9093:JEXY6aqzQY-32P5TStzaFg")
CONFIG = """
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
controller.quorum.bootstrap.servers=localhost:9093
"""
FILES = RealFileSystem()


def request(
    folder: Path,
    *names: str,
    voters: Mapping[int, DynamicVoter] | None = VOTERS,
    is_controller: bool = True,
) -> FormatRequest:
    directories = tuple(str(folder / name) for name in names)
    return FormatRequest(
        node_id=1,
        cluster_id="3Db5QLSqSZieL3rJBUUegA",
        directories=directories,
        metadata_directory=directories[0],
        controller_listener_name="CONTROLLER",
        is_controller=is_controller,
        has_dynamic_quorum=True,
        initial_controllers=voters,
    )


def run(asked: FormatRequest, *, files: RealFileSystem | None = None, seed: int = 1) -> list[str]:
    lines: list[str] = []
    format_directories(
        asked,
        files=files or RealFileSystem(),
        random_source=random.Random(seed),
        now=NOW,
        report=lines.append,
    )
    return lines


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_request_at_the_same_time_writes_the_same_bytes(tmp_path: Path) -> None:
    run(request(tmp_path / "x", "a", "b"))
    run(request(tmp_path / "y", "a", "b"))
    assert contents(tmp_path / "x") == contents(tmp_path / "y")
    assert sorted(contents(tmp_path / "x")) == [
        "a/__cluster_metadata-0/00000000000000000000-0000000000.checkpoint",
        "a/meta.properties",
        "b/meta.properties",
    ]


def test_a_node_that_is_not_a_controller_gets_no_bootstrap_snapshot(tmp_path: Path) -> None:
    run(request(tmp_path, "a", "b", voters=None, is_controller=False))
    assert sorted(contents(tmp_path)) == ["a/meta.properties", "b/meta.properties"]


def test_a_voter_gets_the_directory_id_it_was_promised(tmp_path: Path) -> None:
    kinds = [line.partition(f" {tmp_path}")[0] for line in run(request(tmp_path, "a", "b"))[1:]]
    assert kinds == ["Formatting dynamic metadata voter directory", "Formatting data directory"]
    first = read_meta_properties(tmp_path / "a", RealFileSystem())
    second = read_meta_properties(tmp_path / "b", RealFileSystem())
    assert first is not None
    assert second is not None
    assert first.directory_id == VOTERS[1].directory_id
    assert second.directory_id not in {None, first.directory_id}


def test_what_is_formatted_is_left_alone(tmp_path: Path) -> None:
    run(request(tmp_path, "a"))
    before = contents(tmp_path)
    with pytest.raises(FormatError, match=r"already formatted\. Use --ignore-formatted"):
        run(request(tmp_path, "a"))
    assert contents(tmp_path) == before


class SmallDisk(RealFileSystem):
    """A disk on which nothing of a given name can be made."""

    def __init__(self, full_for: str) -> None:
        super().__init__()
        self._full_for = full_for

    def rename(self, source: Path, target: Path) -> None:
        if self._full_for in target.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().rename(source, target)


@pytest.mark.parametrize("name", ["0000000000.checkpoint", "meta.prop"])
def test_a_full_disk_is_one_line_and_leaves_the_directory_unformatted(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(FormatError, match=r"Error while writing meta\.properties file .*No space"):
        run(request(tmp_path, "a"), files=SmallDisk(name))
    assert not (tmp_path / "a" / "meta.properties").exists()
    run(request(tmp_path, "a"), seed=2)
    assert (tmp_path / "a" / "meta.properties").exists()


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FormatError, match="No available log directories to format"):
        run(request(tmp_path, "file/a"))


def test_golden_voters_are_written_again_as_they_were(golden_sets: Path) -> None:
    name = "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint"
    found = [
        message
        for file in sorted(golden_sets.glob(f"*/metadata/*/{name}"))
        for record in next(iter(read_batches(file.read_bytes()))).records()
        if isinstance(message := decode_control_record(record).message, VotersRecord)
    ]
    assert len(found) > 2
    for voters in found:
        named = {
            each.voter_id: DynamicVoter(
                each.voter_id,
                each.endpoints[0].host,
                each.endpoints[0].port,
                each.voter_directory_id,
            )
            for each in voters.voters
        }
        assert voters_record(named, listener_name=voters.voters[0].endpoints[0].name) == voters


@given(
    st.builds(
        DynamicVoter,
        st.integers(0, 2**31 - 1),
        st.sampled_from(["localhost", "::1", "a.b-c_d", ""]),
        st.integers(0, 65535),
        st.binary(min_size=16, max_size=16),
    )
)
def test_a_voter_is_read_as_it_was_written(voter: DynamicVoter) -> None:
    assert parse_dynamic_voter(f" {voter} ") == voter


@given(st.text(max_size=60))
def test_any_text_is_a_voter_or_refused(text: str) -> None:
    try:
        voter = parse_dynamic_voter(text)
    except FormatError:
        return
    assert 0 <= voter.port <= 65535


def config_file(folder: Path, extra: str = "") -> str:
    file = folder / "server.properties"
    file.write_text(f"{CONFIG}log.dirs={folder}/a\n{extra}")
    return str(file)


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        (
            "num.partitions=none\n",
            "Invalid value none for configuration num.partitions: Not a number of type INT",
        ),
        ("a=\\u12", "Malformed configuration file"),
        ("node.id=-1\n", "Invalid value -1 for configuration node.id: Value must be at least 0"),
    ],
)
def test_a_bad_configuration_is_one_line_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], extra: str, complaint: str
) -> None:
    for command in (["info"], ["format", "-t", "x", "-s"]):
        assert main([*command, "-c", config_file(tmp_path, extra)]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert complaint in printed.err
        assert printed.err.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_a_wrong_level_is_named_before_a_wrong_controller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = ["--feature", "kraft.version=x", "--initial-controllers", "nonsense"]
    assert main(["format", "-t", "x", "-c", config_file(tmp_path), *wrong]) == 1
    assert "unable to parse x as a short" in capsys.readouterr().err


def test_a_configuration_that_is_not_there_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", "-c", str(tmp_path / "nothing")]) == 1
    assert capsys.readouterr().err == (
        f"Cannot read the configuration file {tmp_path}/nothing: No such file or directory\n"
    )


def test_arguments_may_stand_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = tmp_path / "options"
    options.write_text(f"-c\n{config_file(tmp_path)}\n-t\n3Db5QLSqSZieL3rJBUUegA\n-s\n")
    assert main(["format", f"@{options}"]) == 0
    assert "Formatting dynamic metadata voter directory" in capsys.readouterr().out


def test_debugging_shows_where_it_was_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kvorum(["--debug", "storage", "info", "-c", str(tmp_path / "nothing")]) == 1
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert printed.endswith("No such file or directory\n")


def parse(text: str, *, seed: int = 1) -> tuple[str, int, bytes, bytes, bytes, int]:
    record = parse_scram_credential(text, random_source=random.Random(seed))
    return (
        record.name,
        record.mechanism,
        record.salt,
        record.stored_key,
        record.server_key,
        record.iterations,
    )


def test_the_example_of_rfc_7677() -> None:
    salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
    assert parse(f"SCRAM-SHA-256=[name=user,password=pencil,salt={salt},iterations=4096]") == (
        "user",
        1,
        base64.b64decode(salt),
        base64.b64decode("WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="),
        base64.b64decode("wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="),
        4096,
    )


def test_the_salt_is_drawn_where_none_is_given() -> None:
    text = "SCRAM-SHA-512=[name=a,password=p]"
    first, again, other = parse(text), parse(text), parse(text, seed=2)
    assert first == again
    assert first[2] != other[2]
    assert first[1] == 2
    assert int(first[2].decode(), 36) < 1 << 130


def test_a_salted_password_is_taken_as_it_is() -> None:
    plain = parse('SCRAM-SHA-256=[name=a,salt="YQ",password=p,iterations=8192]')
    salted = parse('SCRAM-SHA-256=[name=a,salt="YQ==",saltedpassword="YCE=",iterations=8192]')
    assert plain[2] == salted[2] == b"a"
    assert plain[3] != salted[3]
    assert salted[5] == 8192


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("password=p", "You must supply 'name' to add-scram"),
        ("name=a", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        ("name=a,saltedpassword=YCE=", "You must supply 'salt' with 'saltedpassword' to add-scram"),
        ("name=a,password=p,salt=%", "Failed to decode given salt: %"),
        (
            "name=a,password=p,iterations=1",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM_SHA_256",
        ),
        ("name=a,password=p,x=1", "Unknown SCRAM configurations: x"),
    ],
)
def test_what_is_missing_or_odd_is_named(setting: str, complaint: str) -> None:
    with pytest.raises(FormatError) as refusal:
        parse(f"SCRAM-SHA-256=[{setting}]")
    assert str(refusal.value) == complaint


@pytest.fixture
def formatted_by_4_3(golden_sets: Path, tmp_path: Path) -> Path:
    """A directory that Kafka 4.3.1 formatted, with bootstrap.checkpoint and the voters in 0-0."""
    golden = golden_sets / "standalone-4.3.1" / "metadata" / "broker-12"
    made = tmp_path / "data"
    (made / METADATA_LOG_DIRECTORY).mkdir(parents=True)
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(golden / name, made)
    for snapshot in golden.glob(f"{METADATA_LOG_DIRECTORY}/*.checkpoint"):
        shutil.copy(snapshot, made / METADATA_LOG_DIRECTORY)
    return made


def bootstrap_in(directory: Path) -> BootstrapMetadata:
    config = NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "12",
            "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "log.dirs": str(directory),
        }
    )
    with ExitStack() as locks:
        return open_directories(config, FILES, random=Random(1), locks=locks).bootstrap


def test_the_file_of_an_older_release_is_read(formatted_by_4_3: Path) -> None:
    found = bootstrap_in(formatted_by_4_3)
    assert found.metadata_version == MetadataVersion.V4_3_IV0
    assert found.source.endswith("bootstrap.checkpoint")
    assert len(found.records) > 1


def test_records_in_the_snapshot_at_offset_0_count_first(formatted_by_4_3: Path) -> None:
    level = FeatureLevelRecord(name=METADATA_VERSION_FEATURE, feature_level=25)
    shutil.rmtree(formatted_by_4_3 / METADATA_LOG_DIRECTORY)
    write_bootstrap_snapshot(
        formatted_by_4_3 / METADATA_LOG_DIRECTORY,
        FILES,
        values=[encode_record(level, 0)],
        kraft_version=0,
        voters=None,
        now_ms=1,
    )
    assert bootstrap_in(formatted_by_4_3).records == ((level, 0),)


def test_without_records_a_cluster_begins_at_the_latest_level(formatted_by_4_3: Path) -> None:
    (formatted_by_4_3 / "bootstrap.checkpoint").unlink()
    found = bootstrap_in(formatted_by_4_3)
    assert found.metadata_version == LATEST_PRODUCTION_METADATA_VERSION
    assert found.source == "the default bootstrap"
