"""The output of `kvorum log diff` about offsets, files and replicas."""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.golden_data import METADATA_NODES

from kvorum.cli import main
from kvorum.inspection.image_entries import image_changes, image_entries
from kvorum.inspection.metadata_log.folding import FoldedLog
from kvorum.metadata.image import MetadataImage
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches

NODE = METADATA_NODES[1]
REPLICA = METADATA_NODES[2]


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


@pytest.mark.parametrize("words", [["one"], ["one", "two", "three"], ["one", "--from", "x"]])
def test_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "diff", *words]) == 2
    assert capsys.readouterr().err


def test_a_path_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "diff", "/not/there", "--from", "1"]) == 1
    assert capsys.readouterr().err == (
        "kvorum log: cannot read /not/there: No such file or directory\n"
    )
