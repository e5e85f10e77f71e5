"""The dump of golden files, byte for byte, of batches printed many at a time, and of damaged files.

Kafka 4.4.0 prints the name of a transaction's state, where older releases print its number.
"""

import re
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support import dump_log
from tests.support.dump_log import decoder_of, dump

from kvorum.cli.dump.decoders import MetadataDecoder, java_text
from kvorum.cli.dump.log_dump import LogDump
from kvorum.cli.dump.log_text import entry_line, records_with_texts
from kvorum.inspection.reading import MappedFile
from kvorum.internal_topics.states import TRANSACTION_STATES
from kvorum.metadata.json_text import json_text
from kvorum.metadata.record_frame import encode_record
from kvorum.wire.errors import WireError
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch
from kvorum.wire.records.batch import HEADER_BYTES
from kvorum.wire.records.legacy import read_entries

# Text differs between releases: 4.3.1 is the one to equal.
SETS = ("dynamic-4.3.1", "ladder-4.3.1", "standalone-4.3.1", "legacy-formats")
KINDS = (".decoded.txt", ".print.txt", ".txt")
STATE = re.compile(rb'(?<="transactionStatus":)\d+')
TOPIC_ID = bytes(range(16))
CHANGE = encode_record(PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, isr=[1, 2]), 2)
SHRUNK = encode_record(PartitionChangeRecord(partition_id=4, topic_id=TOPIC_ID, isr=[1]), 2)
LED = encode_record(PartitionChangeRecord(partition_id=3, topic_id=TOPIC_ID, leader=2), 2)
NOTHING = encode_record(NoOpRecord(), 0)
NAMED, LONG = (encode_record(TopicRecord(name="t" * n, topic_id=TOPIC_ID), 0) for n in (3, 90))
NAME = "log"
FORMS = {
    "one": [CHANGE],
    "one of few bytes": [NOTHING],
    "one of many bytes": [LONG],
    "two": [CHANGE, CHANGE],
    "of one size": [CHANGE] * 5,
    "of one size and several kinds": [NAMED, NAMED + b"\0", SHRUNK, CHANGE, NAMED],
    "of many sizes": [CHANGE, LED, SHRUNK, LONG, NAMED],
    "as many as have short numbers": [CHANGE] * 63,
    "one more": [CHANGE, LED] * 32,
    "many": [NAMED, *[CHANGE, LED, SHRUNK] * 25, NAMED],
    "values that are no records": [b"", b"\1", b"\1\5\2", b"\1\5\2\0", b"\2\5\2\0\0"],
}
SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")
LOG = "00000000000000000000.log"
Dump = Callable[..., dump_log.Dumped]


def state_name(number: re.Match[bytes]) -> bytes:
    return b'"%s"' % TRANSACTION_STATES[int(number[0])].encode()


def golden_texts(folder: Path) -> Iterator[tuple[Path, Path, list[str]]]:
    """Yield each stored text with its file and the options that made it."""
    for text in sorted(folder.rglob("dumps/*.txt")):
        ending = next(kind for kind in KINDS if text.name.endswith(kind))
        if text.name.endswith(".shell.txt"):
            continue
        file = text.parent.parent / text.name.removesuffix(ending)
        options = {
            ".decoded.txt": [decoder_of(file)],
            ".print.txt": ["--print-data-log"],
            ".txt": [],
        }
        yield text, file, options[ending]


@pytest.mark.parametrize("name", SETS)
def test_every_file_is_printed_byte_for_byte(
    golden_sets: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suffixes: set[str] = set()
    for text, file, options in golden_texts(golden_sets / name):
        monkeypatch.chdir(file.parent)
        printed = dump(capsys, "--files", file.name, *options)
        assert printed.stdout.encode() == STATE.sub(state_name, text.read_bytes()), text
        assert printed.exit_code == 0
        suffixes.add(file.suffix)
    assert suffixes >= ({".log"} if name == "legacy-formats" else {".log", ".checkpoint"})


def one_by_one(data: bytes) -> Iterator[str]:
    """Yield the lines, each batch and each record by itself."""
    decoder = MetadataDecoder()
    rest = len(data)
    for entry in read_entries(data, is_cut_allowed=True):
        yield entry_line(entry)
        for record, text in records_with_texts(entry):
            yield text if entry.is_control else f"{text} payload: {decoder(record).value}"
        rest -= entry.size
    if rest:
        yield f"Found {rest} invalid bytes at the end of {NAME}"


def until_error(lines: Iterator[str]) -> tuple[str, str]:
    """Return the lines and the error that ends them."""
    found: list[str] = []
    try:
        found.extend(lines)
    except WireError as error:
        return "\n".join(found), str(error)
    return "\n".join(found), ""


def dumped(folder: Path, data: bytes) -> tuple[str, str]:
    path = folder / NAME
    path.write_bytes(data)
    dump = LogDump(NAME, is_deep=True, decoder=MetadataDecoder())
    return until_error(dump.lines(MappedFile(path)))


@pytest.mark.parametrize("values", FORMS.values(), ids=FORMS)
def test_batches_are_printed_as_one_by_one(tmp_path: Path, values: list[bytes]) -> None:
    batch = build_batch([RecordData(value, None, 5) for value in values], BatchOptions())
    other = build_batch(
        [RecordData(CHANGE, b"k", 5)] * 5, BatchOptions(compression=Compression.GZIP)
    )
    data = batch + other + batch * 3
    assert dumped(tmp_path, data) == until_error(one_by_one(data))


@pytest.mark.parametrize("values", FORMS.values(), ids=FORMS)
def test_any_byte_that_is_wrong_is_printed_as_one_by_one(
    tmp_path: Path, values: list[bytes]
) -> None:
    batch = build_batch([RecordData(value, None, 5) for value in values], BatchOptions())
    ends = {*range(HEADER_BYTES + 48), *range(len(batch) - 12, len(batch))}
    for place in sorted(ends & set(range(len(batch)))):
        for bit in (0, 1, 7):
            damaged = bytearray(batch)
            damaged[place] ^= 1 << bit
            # Behind another one: what is known of its records is used then.
            data = batch + damaged + batch
            assert dumped(tmp_path, data) == until_error(one_by_one(data)), (place, bit)


def test_the_lines_of_batches_alone_are_the_same(tmp_path: Path) -> None:
    values = [RecordData(CHANGE, None, 5)]
    batches = [
        build_batch(values, BatchOptions()),
        build_batch(values, BatchOptions(producer_id=7, producer_epoch=1, base_sequence=2)),
        build_batch(values, BatchOptions(compression=Compression.LZ4)),
    ]
    data = b"".join(batches[number] for number in (0, 0, 1, 1, 0, 2, 0, 0))
    path = tmp_path / NAME
    path.write_bytes(data)
    lines = "\n".join(LogDump(NAME).lines(MappedFile(path)))
    assert lines == "\n".join(map(entry_line, read_entries(data)))


@pytest.fixture
def dump_file(capsys: pytest.CaptureFixture[str]) -> Dump:
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
    metadata_log: Path, dump_file: Dump
) -> None:
    whole = dump_file(metadata_log)
    size = metadata_log.stat().st_size
    with metadata_log.open("ab") as file:
        file.write(b"\0" * 20)
    printed = dump_file(metadata_log)
    assert printed.exit_code == 1
    assert printed.stdout == whole.stdout
    assert f"record batch at byte {size}: " in printed.stderr
    assert printed.stderr.count("\n") == 1


def test_a_few_bytes_at_the_end_are_counted(metadata_log: Path, dump_file: Dump) -> None:
    with metadata_log.open("ab") as file:
        file.write(b"torn")
    assert dump_file(metadata_log).stdout.endswith(f"Found 4 invalid bytes at the end of {LOG}\n")


def test_a_flipped_bit_is_shown_and_not_hidden(metadata_log: Path, dump_file: Dump) -> None:
    data = bytearray(metadata_log.read_bytes())
    data[70] ^= 1
    metadata_log.write_bytes(data)
    assert dump_file(metadata_log).stdout.count("isvalid: false") == 1


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path, dump_file: Dump) -> None:
    name = tmp_path / LOG
    printed = dump_file(name)
    assert printed.exit_code == 1
    assert printed.stderr == f"Cannot read {name}: No such file or directory\n"


@pytest.mark.parametrize("name", ["notes.txt", "README"])
def test_other_files_are_passed_over(tmp_path: Path, dump_file: Dump, name: str) -> None:
    printed = dump_file(tmp_path / name)
    assert printed.exit_code == 0
    assert printed.stderr == f"Ignoring unknown file {tmp_path / name}\n"


@pytest.mark.parametrize("name", ["first.log", "99999999999999999999999.log", "x.checkpoint"])
def test_a_name_without_an_offset_is_one_line(tmp_path: Path, dump_file: Dump, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    printed = dump_file(tmp_path / name)
    assert printed.exit_code == 1
    assert name in printed.stderr
    assert printed.stderr.count("\n") == 1


def test_an_empty_log_has_nothing_in_it(tmp_path: Path, dump_file: Dump) -> None:
    (tmp_path / LOG).write_bytes(b"")
    printed = dump_file(tmp_path / LOG, "--print-data-log")
    assert printed.stdout == f"Dumping {tmp_path / LOG}\nLog starting offset: 0\n"


def test_a_batch_that_unpacks_to_much_is_printed(tmp_path: Path, dump_file: Dump) -> None:
    value = b"a" * (20 * 1024 * 1024)
    options = BatchOptions(compression=Compression.ZSTD)
    (tmp_path / LOG).write_bytes(build_batch([RecordData(value, None, 1)], options))
    assert f"valueSize: {len(value)}" in dump_file(tmp_path / LOG, "--deep-iteration").stdout


def test_a_record_that_is_not_metadata_says_so(tmp_path: Path, dump_file: Dump) -> None:
    (tmp_path / LOG).write_bytes(build_batch([RecordData(b"\x01\x7f\x00", None, 1)]))
    printed = dump_file(tmp_path / LOG, "--cluster-metadata-decoder")
    assert printed.exit_code == 0
    assert " payload: Error at 0, skipping. " in printed.stdout


def test_a_coordinators_record_without_a_key_is_one_line(tmp_path: Path, dump_file: Dump) -> None:
    (tmp_path / LOG).write_bytes(build_batch([RecordData(b"v", None, 1)]))
    printed = dump_file(tmp_path / LOG, "--offsets-decoder")
    assert printed.exit_code == 1
    assert "(message had a missing key)" in printed.stderr


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.sampled_from([".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot"]),
    st.binary(max_size=300),
)
def test_any_bytes_are_printed_or_refused_in_one_line(
    tmp_path: Path, dump_file: Dump, suffix: str, data: bytes
) -> None:
    name = "00000000000000000005-0000000001" if suffix == ".checkpoint" else "00000000000000000005"
    for companion in (".log", ".index"):
        (tmp_path / (name + companion)).write_bytes(b"")
    (tmp_path / (name + suffix)).write_bytes(data)
    printed = dump_file(tmp_path / (name + suffix), "--deep-iteration")
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


def test_an_index_that_points_before_its_log_is_one_line(tmp_path: Path, dump_file: Dump) -> None:
    (tmp_path / LOG).write_bytes(build_batch([RecordData(b"v", None, 1)]))
    index = tmp_path / LOG.replace(".log", ".index")
    index.write_bytes(struct.pack(">ii", 7, -8))
    printed = dump_file(index)
    assert printed.exit_code == 1
    assert printed.stderr == f"{index}: offset 7 points at position -8\n"


def test_aborted_transactions_of_a_version_to_come_are_one_line(
    tmp_path: Path, dump_file: Dump
) -> None:
    index = tmp_path / LOG.replace(".log", ".txnindex")
    known, unknown = (struct.pack(">hqqqq", version, 9, 1, 2, 3) for version in (0, 1))
    index.write_bytes(known + unknown)
    printed = dump_file(index)
    assert printed.exit_code == 1
    assert printed.stdout.splitlines()[1:] == [
        "version: 0 producerId: 9 firstOffset: 1 lastOffset: 2 lastStableOffset: 3"
    ]
    problem = "unknown version 1 of an aborted transaction (only 0 is known)"
    assert printed.stderr == f"{index}: {problem}\n"


def test_what_is_cut_off_is_counted_whatever_it_is(tmp_path: Path, dump_file: Dump) -> None:
    for magic in (0, 1, 2, 3):
        tail = b"\xff" * 8 + struct.pack(">iiB", 1_000, 0, magic) + bytes(20)
        (tmp_path / LOG).write_bytes(build_batch([RecordData(b"v", None, 1)]) + tail)
        printed = dump_file(tmp_path / LOG)
        assert printed.exit_code == 0
        assert printed.stdout.endswith(f"Found {len(tail)} invalid bytes at the end of {LOG}\n")
