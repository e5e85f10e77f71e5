"""The output of `kvorum log decode` for every kind of file."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.golden_data import TOPICS, golden_records

from kvorum.cli import main
from kvorum.inspection.decoding.files import file_objects, files_below
from kvorum.storage.names import parse_offset_name
from kvorum.wire.records import BatchOptions, Compression, RecordData, build_batch
from kvorum.wire.records.legacy import read_entries

SETS = ("dynamic-4.3.1", "ladder-4.3.1", "standalone-4.3.1", "static-3.9.1", "legacy-formats")


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


def test_files_that_no_node_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("notes.txt", "x.log"):
        (tmp_path / name).write_text("")
        assert main(["log", "decode", str(tmp_path / name)]) == 1
        assert capsys.readouterr().err.startswith(f"kvorum log: {tmp_path / name}: ")
    (tmp_path / "empty").mkdir()
    assert main(["log", "decode", str(tmp_path / "empty")]) == 2
