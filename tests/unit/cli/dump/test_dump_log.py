"""Damaged and odd files: printed as far as they go, then one clear line."""

import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import dump_log

from kvorum.cli.dump.decoders import java_text
from kvorum.metadata.json_text import json_text
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch

SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
LOG = "00000000000000000000.log"
Dump = Callable[..., dump_log.Dumped]


@pytest.fixture
def dump(capsys: pytest.CaptureFixture[str]) -> Dump:
    """The command, on one file."""

    def run(file: Path, *words: str) -> dump_log.Dumped:
        return dump_log.dump(capsys, "--files", str(file), *words)

    return run


@pytest.fixture
def metadata_log(golden_sets: Path, tmp_path: Path) -> Path:
    source = golden_sets / "dynamic-4.3.1" / "metadata" / "controller-1" / "__cluster_metadata-0"
    for path in source.glob("00000000000000000000.*"):
        shutil.copy(path, tmp_path)
    return tmp_path / LOG


def test_anything_that_is_not_a_batch_ends_the_dump_in_one_line(
    metadata_log: Path, dump: Dump
) -> None:
    whole = dump(metadata_log)
    size = metadata_log.stat().st_size
    with metadata_log.open("ab") as file:
        file.write(b"\0" * 20)
    printed = dump(metadata_log)
    assert printed.exit_code == 1
    assert printed.stdout == whole.stdout
    assert f"record batch at byte {size}: " in printed.stderr
    assert printed.stderr.count("\n") == 1


def test_a_few_bytes_at_the_end_are_counted(metadata_log: Path, dump: Dump) -> None:
    with metadata_log.open("ab") as file:
        file.write(b"torn")
    assert dump(metadata_log).stdout.endswith(f"Found 4 invalid bytes at the end of {LOG}\n")


def test_a_flipped_bit_is_shown_and_not_hidden(metadata_log: Path, dump: Dump) -> None:
    data = bytearray(metadata_log.read_bytes())
    data[70] ^= 1
    metadata_log.write_bytes(data)
    assert dump(metadata_log).stdout.count("isvalid: false") == 1


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, dump: Dump) -> None:
    name = tmp_path / LOG
    printed = dump(name)
    assert printed.exit_code == 1
    assert printed.stderr == f"Cannot read {name}: No such file or directory\n"


@pytest.mark.parametrize("name", ["notes.txt", "README"])
def test_other_files_are_passed_over(tmp_path: Path, dump: Dump, name: str) -> None:
    printed = dump(tmp_path / name)
    assert printed.exit_code == 0
    assert printed.stderr == f"Ignoring unknown file {tmp_path / name}\n"


@pytest.mark.parametrize("name", ["first.log", "99999999999999999999999.log", "x.checkpoint"])
def test_a_name_without_an_offset_is_one_line(tmp_path: Path, dump: Dump, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    printed = dump(tmp_path / name)
    assert printed.exit_code == 1
    assert name in printed.stderr
    assert printed.stderr.count("\n") == 1


def test_an_empty_log_has_nothing_in_it(tmp_path: Path, dump: Dump) -> None:
    (tmp_path / LOG).write_bytes(b"")
    printed = dump(tmp_path / LOG, "--print-data-log")
    assert printed.stdout == f"Dumping {tmp_path / LOG}\nLog starting offset: 0\n"


def test_a_batch_that_unpacks_to_much_is_printed(tmp_path: Path, dump: Dump) -> None:
    value = b"a" * (20 * 1024 * 1024)
    options = BatchOptions(compression=Compression.ZSTD)
    (tmp_path / LOG).write_bytes(build_batch([RecordData(value, None, 1)], options))
    printed = dump(tmp_path / LOG, "--deep-iteration")
    assert f"valueSize: {len(value)}" in printed.stdout


def test_a_record_that_is_not_metadata_says_so(tmp_path: Path, dump: Dump) -> None:
    (tmp_path / LOG).write_bytes(build_batch([RecordData(b"\x01\x7f\x00", None, 1)]))
    printed = dump(tmp_path / LOG, "--cluster-metadata-decoder")
    assert printed.exit_code == 0
    assert " payload: Error at 0, skipping. " in printed.stdout


def test_a_coordinators_record_without_a_key_is_one_line(tmp_path: Path, dump: Dump) -> None:
    (tmp_path / LOG).write_bytes(build_batch([RecordData(b"v", None, 1)]))
    printed = dump(tmp_path / LOG, "--offsets-decoder")
    assert printed.exit_code == 1
    assert "(message had a missing key)" in printed.stderr


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.sampled_from([".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"]),
    st.binary(max_size=300),
)
def test_any_bytes_are_printed_or_refused_in_one_line(
    tmp_path: Path, dump: Dump, suffix: str, data: bytes
) -> None:
    name = "00000000000000000005-0000000001" if suffix == ".checkpoint" else "00000000000000000005"
    for companion in (".log", ".index"):
        (tmp_path / (name + companion)).write_bytes(b"")
    (tmp_path / (name + suffix)).write_bytes(data)
    printed = dump(tmp_path / (name + suffix), "--deep-iteration")
    assert printed.exit_code in {0, 1}
    if printed.exit_code:
        assert printed.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": [1, True, None]}, '{"a":[1,true,null]}'),
        (1e10, "1.0E10"),
        (0.5, "0.5"),
        ('"\\\n\x1f\u00e9', '"\\"\\\\\\n\\u001F\u00e9"'),
        ("\\u001f", '"\\\\u001f"'),
    ],
)
def test_json_is_written_as_kafka_writes_it(value: object, text: str) -> None:
    assert json_text(value) == text


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"\xed\xa0\x80", 1),
        (b"\xff\xfe", 2),
        (b"\xe2\x82", 1),
        (b"\xf0\x9f\x98x", 1),
        (b"\xc0\x80", 2),
    ],
)
def test_malformed_text_is_replaced_as_java_replaces_it(data: bytes, count: int) -> None:
    assert java_text(data).count("\N{REPLACEMENT CHARACTER}") == count


def test_an_index_that_points_before_its_log_is_one_line(tmp_path: Path, dump: Dump) -> None:
    (tmp_path / LOG).write_bytes(build_batch([RecordData(b"v", None, 1)]))
    index = tmp_path / LOG.replace(".log", ".index")
    index.write_bytes(struct.pack(">ii", 7, -8))
    printed = dump(index)
    assert printed.exit_code == 1
    assert printed.stderr == f"{index}: offset 7 points at position -8\n"


def test_aborted_transactions_of_a_version_to_come_are_one_line(tmp_path: Path, dump: Dump) -> None:
    index = tmp_path / LOG.replace(".log", ".txnindex")
    known, unknown = (struct.pack(">hqqqq", version, 9, 1, 2, 3) for version in (0, 1))
    index.write_bytes(known + unknown)
    printed = dump(index)
    assert printed.exit_code == 1
    assert printed.stdout.splitlines()[1:] == [
        "version: 0 producerId: 9 firstOffset: 1 lastOffset: 2 lastStableOffset: 3"
    ]
    problem = "unknown version 1 of an aborted transaction (only 0 is known)"
    assert printed.stderr == f"{index}: {problem}\n"


def test_what_is_cut_off_is_counted_whatever_it_is(tmp_path: Path, dump: Dump) -> None:
    for magic in (0, 1, 2, 3):
        tail = b"\xff" * 8 + struct.pack(">iiB", 1_000, 0, magic) + bytes(20)
        (tmp_path / LOG).write_bytes(build_batch([RecordData(b"v", None, 1)]) + tail)
        printed = dump(tmp_path / LOG)
        assert printed.exit_code == 0
        assert printed.stdout.endswith(f"Found {len(tail)} invalid bytes at the end of {LOG}\n")
