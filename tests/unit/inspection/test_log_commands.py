"""The output of `kvorum log decode` and `kvorum log diff`, and how far they tell that they are."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.batch_maker import make_batch, make_snapshot
from tests.support.golden_data import METADATA_NODES, TOPICS, golden_records

from kvorum.cli import main
from kvorum.cli.log_tool import decode
from kvorum.inspection.decoding.files import file_objects, files_below
from kvorum.inspection.folded_log import FoldedLog
from kvorum.inspection.folding import fold_until
from kvorum.inspection.image_entries import image_changes, image_entries
from kvorum.inspection.log_check import listing
from kvorum.inspection.log_check.check import check_paths
from kvorum.inspection.log_check.findings import Findings, Severity, Verdict
from kvorum.inspection.moment import Moment
from kvorum.inspection.reading import GONE, OFFSET_ENTRY, TIME_ENTRY
from kvorum.metadata.image import MetadataImage
from kvorum.storage.names import parse_offset_name
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch, read_batches
from kvorum.wire.records.legacy import read_entries

SETS = ("dynamic-4.3.1", "ladder-4.3.1", "standalone-4.3.1", "static-3.9.1", "legacy-formats")
NODE = METADATA_NODES[1]
REPLICA = METADATA_NODES[2]
SNAPSHOT = make_snapshot(epoch=1)
SEGMENT = make_batch(0) + make_batch(1)
CHECKPOINT = b"0\n1\n2 5\n"
INDEX_ENTRIES = {"offsetIndexEntry", "timeIndexEntry", "abortedTransaction"}


@pytest.mark.parametrize("golden_set", SETS)
def test_all_files_of_real_nodes(golden_sets: Path, golden_set: str) -> None:
    files = files_below(golden_sets / golden_set)
    assert len(files) > 5
    for file in files:
        objects = list(file_objects(file))
        kinds = Counter(found["type"] for found in objects)
        assert not kinds["damage"], (file, objects)
        assert not any("problem" in found for found in objects), file
        if file.suffix in {".log", ".checkpoint"}:
            entries = list(read_entries(file.read_bytes()))
            assert kinds["batch"] + kinds["message"] == len(entries)
            assert kinds["record"] == sum(len(list(entry.records())) for entry in entries)
        json.dumps(objects)


def test_every_kind_of_file_is_known(golden_sets: Path) -> None:
    """Nothing that a node writes is left out, but for locks and files of text beside the sets."""
    decoded = set(files_below(golden_sets / "static-3.9.1")) | set(
        files_below(golden_sets / "dynamic-4.3.1")
    )
    for path in golden_sets.glob("*-4.3.1/*/*/*"):
        if path.is_file() and parse_offset_name(path.name) and "dynamic" in str(path):
            assert path in decoded, path
    assert {found["type"] for path in decoded for found in file_objects(path)} == {
        "abortedTransaction",
        "batch",
        "cleanShutdown",
        "leaderEpoch",
        "metaProperties",
        "offsetCheckpoint",
        "offsetIndexEntry",
        "partitionMetadata",
        "producer",
        "quorumState",
        "record",
        "timeIndexEntry",
    }


@pytest.mark.parametrize("topic", TOPICS)
def test_records_of_internal_topics(golden_sets: Path, topic: str) -> None:
    found = [
        one
        for path in sorted(golden_sets.glob(f"dynamic-4.3.1/data/{topic}-*/*.log"))
        for one in file_objects(path)
        if one["type"] == "record" and "controlType" not in one
    ]
    expected = list(golden_records(golden_sets, topic))
    assert len(found) == len(expected) > 0
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["key"] == theirs.dumped_key()["data"]
        value = theirs.dumped_value()
        assert ours["value"] == (None if value is None else value["data"])


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_damage_is_a_line_and_reading_goes_on(
    golden_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = tmp_path / "node"
    shutil.copytree(golden_sets / "dynamic-4.3.1" / "metadata" / "controller-1", node)
    segment = node / "__cluster_metadata-0" / "00000000000000001016.log"
    data = bytearray(segment.read_bytes())
    data[5100] ^= 1
    segment.write_bytes(data)
    assert main(["log", "decode", str(segment)]) == 1
    lines = lines_of(capsys)
    (damage,) = [line for line in lines if line["type"] == "damage"]
    assert damage["position"] == 4997
    assert damage["offset"] == 1120
    assert lines[-1]["offset"] == 2164


def test_a_batch_that_unpacks_to_much_is_not_damage(tmp_path: Path) -> None:
    file = tmp_path / "topic-0" / f"{0:020}.log"
    file.parent.mkdir()
    options = BatchOptions(partition_leader_epoch=0, compression=Compression.ZSTD)
    file.write_bytes(build_batch([RecordData(bytes(2**23), None, 5)], options))
    assert [found["type"] for found in file_objects(file)] == ["batch", "record"]


def test_a_small_file_that_is_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "leader-epoch-checkpoint"
    file.write_text("0\n2\n1 0\n")
    assert main(["log", "decode", str(file)]) == 1
    assert lines_of(capsys) == [
        {
            "file": str(file),
            "type": "damage",
            "position": 0,
            "problem": "2 entries announced, 1 found",
        }
    ]


def test_bytes_that_are_no_text(golden_sets: Path, tmp_path: Path) -> None:
    segment = max(
        golden_sets.glob("dynamic-4.3.1/data/__consumer_offsets-*/*.log"),
        key=lambda path: path.stat().st_size,
    )
    as_user_data = [one for one in file_objects(segment, "mine") if one["type"] == "record"]
    assert any(isinstance(one.get("key"), dict) and "base64" in one["key"] for one in as_user_data)


def test_a_segment_that_is_on_its_way_out(golden_sets: Path, tmp_path: Path) -> None:
    segment = golden_sets / "static-3.9.1" / "data" / "clicks_raw-rdkafka-0"
    (file, *_) = sorted(segment.glob("*.log"))
    leaving = tmp_path / f"{file.name}.deleted"
    shutil.copy(file, leaving)
    assert list(file_objects(leaving)) == list(file_objects(file))


@pytest.mark.parametrize("name", [f"{0:020}.index", f"{0:020}.timeindex", f"{0:020}.txnindex"])
def test_an_index_that_is_on_its_way_out(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes(34 if name.endswith(".txnindex") else 24))
    leaving = (tmp_path / name).rename(tmp_path / f"{name}.deleted")
    assert {found["type"] for found in file_objects(leaving)} <= INDEX_ENTRIES


@pytest.mark.parametrize(
    ("suffix", "entry_size"), [(".index", OFFSET_ENTRY.size), (".timeindex", TIME_ENTRY.size)]
)
@pytest.mark.parametrize("count", [0, 2])
def test_the_zeros_behind_the_entries_of_an_index_are_left_out(
    tmp_path: Path, suffix: str, entry_size: int, count: int
) -> None:
    index = tmp_path / f"{0:020}{suffix}"
    entries = [bytes(entry_size - 1) + bytes([number]) for number in range(1, count + 1)]
    index.write_bytes(b"".join(entries) + bytes(4 * entry_size))
    assert len(list(file_objects(index))) == count


def test_a_record_of_time_0_has_an_entry_of_zeros(tmp_path: Path) -> None:
    log = tmp_path / "orders-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(make_batch(0, timestamp=0))
    (log / f"{1:020}.log").write_bytes(b"")
    index = log / f"{0:020}.timeindex"
    index.write_bytes(bytes(TIME_ENTRY.size))
    assert len(list(file_objects(index))) == 1
    assert check_paths([log]).verdict is Verdict.SOUND


def test_an_index_is_read_whole_however_large_it_is_set_aside(tmp_path: Path) -> None:
    log = tmp_path / "orders-0"
    log.mkdir()
    (log / f"{0:020}.log").write_bytes(make_batch(0, timestamp=1))
    index = log / f"{0:020}.timeindex"
    index.write_bytes(TIME_ENTRY.pack(1, 0))
    os.truncate(index, 6_000_000 * TIME_ENTRY.size)
    assert check_paths([log]).verdict is Verdict.SOUND


def test_a_file_that_is_larger_than_a_node_reads_is_not_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "SIZE_MAX", 10)
    file, findings = tmp_path / "quorum-state", Findings()
    file.write_bytes(bytes(11))
    assert listing.read_whole(file, findings) is None
    assert [finding.severity for finding in findings.all] == [Severity.UNREADABLE]


def test_a_checkpoint_that_is_being_replaced_is_not_the_one_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n")
    new = tmp_path / "leader-epoch-checkpoint.tmp"
    new.write_text("0\n1\n2 5\n")
    assert list(file_objects(new)) == [{"type": "leaderEpoch", "epoch": 2, "startOffset": 5}]


@pytest.mark.parametrize(
    ("name", "data", "size"),
    [
        *((f"{5:020}-{1:010}-77.checkpoint.part", SNAPSHOT, size) for size in (0, 40, 100, 160)),
        (f"{0:020}.log.cleaned", SEGMENT, len(SEGMENT) - 1),
        ("leader-epoch-checkpoint.tmp", CHECKPOINT, 4),
    ],
)
def test_the_end_of_a_file_that_is_being_written_is_not_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, size: int
) -> None:
    (tmp_path / name).write_bytes(data[:size])
    assert main(["log", "decode", str(tmp_path)]) == 0
    found = [json.loads(line)["type"] for line in capsys.readouterr().out.splitlines()]
    assert found[-1] == "unfinished"


@pytest.mark.parametrize("position", [70, len(SEGMENT) - 2])
def test_damage_in_a_file_that_is_being_written_is_damage_where_more_follows(
    tmp_path: Path, position: int
) -> None:
    file = tmp_path / f"{0:020}.log.cleaned"
    data = bytearray(SEGMENT + make_batch(2))
    data[position] ^= 1
    file.write_bytes(data)
    assert "damage" in {found["type"] for found in file_objects(file)}


def test_decoding_goes_on_after_a_file_that_a_node_has_removed_meanwhile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("leader-epoch-checkpoint", "leader-epoch-checkpoint.tmp"):
        (tmp_path / name).write_text("0\n1\n1 0\n")
    (tmp_path / f"{0:020}.index.deleted").write_bytes(bytes(8))
    listed = files_below(tmp_path)
    listed[0].unlink()
    listed[2].unlink()

    def listed_before(_directory: Path) -> list[Path]:
        return listed

    monkeypatch.setattr(decode, "files_below", listed_before)
    assert main(["log", "decode", str(tmp_path)]) == 0
    output = capsys.readouterr()
    assert [json.loads(line)["file"] for line in output.out.splitlines()] == [str(listed[1])]
    gone = [f"kvorum log: {listed[place]}: {GONE}" for place in (0, 2)]
    assert output.err.splitlines() == gone


@pytest.mark.parametrize("name", ["leader-epoch-checkpoint", "recovery-point-offset-checkpoint"])
def test_a_file_that_is_named_and_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    gone = tmp_path / name
    assert main(["log", "decode", str(gone)]) == 1
    assert capsys.readouterr().err == f"kvorum log: cannot read {gone}: No such file or directory\n"


def test_files_that_no_node_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("notes.txt", "x.log"):
        (tmp_path / name).write_text("")
        assert main(["log", "decode", str(tmp_path / name)]) == 1
        assert capsys.readouterr().err.startswith(f"kvorum log: {tmp_path / name}: ")
    (tmp_path / "empty").mkdir()
    assert main(["log", "decode", str(tmp_path / "empty")]) == 2


def folded(*messages: Message) -> FoldedLog:
    image = MetadataImage()
    for offset, message in enumerate(messages):
        image = image.apply(message, 0, offset)
    return FoldedLog(image)


def quota(user: str | None, rate: float) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        [ClientQuotaRecord.EntityData("user", user)], "consumer_byte_rate", rate
    )


def test_changes_of_an_image() -> None:
    before = folded(TopicRecord("gone", bytes(15) + b"\1"), quota(None, 1.0))
    after = folded(TopicRecord("new", bytes(15) + b"\2"), quota(None, 2.0))
    assert [change for change in image_changes(before, after) if "name" not in change.path] == [
        ("topics/byName/gone/id", "AAAAAAAAAAAAAAAAAAAAAQ", None),
        ("clientQuotas/user(<default>)/consumer_byte_rate", "1.0", "2.0"),
        ("topics/byName/new/id", None, "AAAAAAAAAAAAAAAAAAAAAg"),
    ]


def test_a_default_differs_from_an_empty_name() -> None:
    paths = [entry.path for entry in image_entries(folded(quota(None, 1.0), quota("", 2.0)))]
    assert [path for path in paths if path.startswith("clientQuotas")] == [
        "clientQuotas/user()/consumer_byte_rate",
        "clientQuotas/user(<default>)/consumer_byte_rate",
    ]


def test_two_equal_replicas(golden_sets: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "diff", str(golden_sets / NODE), str(golden_sets / REPLICA)]) == 0
    printed = capsys.readouterr().out
    assert "the logs are equal" in printed
    assert "the images are equal" in printed


def test_a_replica_that_is_behind(
    golden_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = tmp_path / "node"
    shutil.copytree(golden_sets / NODE, node)
    log = node / "__cluster_metadata-0"
    (log / "00000000000000002165.log").unlink()
    (log / "00000000000000002497-0000000010.checkpoint").unlink()
    assert main(["log", "diff", "--json", str(golden_sets / NODE), str(node)]) == 1
    logs, *changes = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert logs["logEndOffsets"][str(node)] == 2165
    assert logs["differences"] == ["the shorter log lacks offsets 2165 to 2500"]
    assert changes


def test_damage_is_a_difference(
    golden_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = tmp_path / "node"
    shutil.copytree(golden_sets / NODE, node)
    file = node / "__cluster_metadata-0" / "00000000000000001016.log"
    data = bytearray(file.read_bytes())
    data[5000] ^= 1
    file.write_bytes(data)
    assert main(["log", "diff", str(golden_sets / NODE), str(node)]) == 1
    assert f"{file}: damaged at byte 4997" in capsys.readouterr().out


def test_replicas_of_a_data_topic(
    golden_sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    partition = golden_sets / "static-3.9.1" / "data" / "clicks_raw-rdkafka-0"
    assert main(["log", "diff", str(partition), str(partition)]) == 0
    assert "the logs are equal" in capsys.readouterr().out
    other = tmp_path / partition.name
    shutil.copytree(partition, other)
    segment = max(other.glob("*.log"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    *_, last = read_batches(bytes(data))
    # A later epoch, which no checksum covers.
    data[last.position + 15] += 1
    segment.write_bytes(data)
    assert main(["log", "diff", str(partition), str(other)]) == 1
    assert "their ends differ from here on" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ["log", "diff", "{}", "{}"],
        ["log", "diff", "--from", "1", "{}"],
        ["log", "image", "{}"],
        ["log", "image", "--time", "2026-01-01", "{}"],
        ["log", "why", "orders", "0", "{}"],
        ["shell", "--directory", "{}", "ls"],
    ],
)
def test_a_directory_above_that_of_a_log_is_an_error_that_names_it(
    golden_sets: Path, tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    node = tmp_path / "controller-1"
    shutil.copytree(golden_sets / NODE, node / "data")
    assert main([word.format(node) for word in command]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{node}: no metadata log is in it: name {node}/data below it\n" in printed.err


@pytest.mark.parametrize("words", [["one"], ["one", "two", "three"], ["one", "--from", "x"]])
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "diff", *words]) == 2
    assert capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("", "one of the arguments PATH --explain is required"),
        ("--json", "one of the arguments PATH --explain is required"),
        ("--explain a@1 b", "argument PATH: not allowed with argument --explain"),
    ],
)
def test_a_check_of_nothing_shows_the_usage(
    words: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", "check", *words.split()]) == 2
    usage, *_, last = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: kvorum log check [-h] ")
    assert last == f"kvorum log check: error: {problem}"


def test_a_path_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "diff", "/not/there", "--from", "1"]) == 1
    assert capsys.readouterr().err == (
        "kvorum log: cannot read /not/there: No such file or directory\n"
    )


def test_readings_tell_how_far_they_are(golden_sets: Path) -> None:
    node = golden_sets / METADATA_NODES[1]
    told: list[tuple[Path, int]] = []

    def tell(file: Path, position: int) -> None:
        told.append((file, position))

    def warn(text: str) -> None:
        pytest.fail(text)

    fold_until(node, Moment(1500), warn=warn, tell=tell)
    assert told
    count = len(told)
    check_paths([node], tell=tell)
    segments = {file.name for file, _ in told[count:] if file.suffix == ".log"}
    assert segments == {file.name for file in node.glob("*/*.log")}
    count = len(told)
    (segment,) = node.glob("*/00000000000000000000.log")
    check_paths([segment], tell=tell)
    assert segment in {file for file, _ in told[count:]}


@pytest.mark.parametrize("name", ["notes.txt", "00000000000000000000.txt"])
def test_a_file_that_is_no_log_is_not_called_sound(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / name
    file.write_text("hello\n")
    assert main(["log", "check", str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert f"{file}: no file of a log, by its name" in printed.err


def test_damage_behind_a_link_is_found(golden_sets: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "disk" / "metadata"
    shutil.copytree(golden_sets / METADATA_NODES[-1] / "__cluster_metadata-0", elsewhere)
    node = tmp_path / "node"
    node.mkdir()
    (node / "__cluster_metadata-0").symlink_to(elsewhere)
    assert check_paths([node]).verdict is Verdict.SOUND
    (segment,) = elsewhere.glob("*.log")
    damaged = bytearray(segment.read_bytes())
    damaged[100] ^= 0xFF
    segment.write_bytes(damaged)
    assert check_paths([node]).verdict is Verdict.DAMAGED


def test_a_swap_is_checked_as_its_segment(tmp_path: Path) -> None:
    """A crash during compaction leaves one: a node finishes the replacement at its next start."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    swap = folder / "00000000000000000005.log.swap"
    swap.write_bytes(make_batch(5) + make_batch(8))
    (folder / "00000000000000000005.index.swap").touch()
    (folder / "00000000000000000006.log").write_bytes(make_batch(6))
    report = check_paths([folder])
    assert report.verdict is Verdict.SOUND
    checked = {file.name for file in report.files}
    assert swap.name in checked
    assert "00000000000000000006.log" not in checked, "it is replaced"
    swap.write_bytes(make_batch(5)[:-1] + b"x" + make_batch(8))
    assert check_paths([folder]).verdict is Verdict.DAMAGED
