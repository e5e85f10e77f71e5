"""Rows of single files, without Spark."""

import pickle
from pathlib import Path

import pytest

from kvorum.metadata.record_frame import encode_record
from kvorum.spark.arrow_rows import ARROW_SCHEMA, BATCH_ROWS_MAX, arrow_batches
from kvorum.spark.errors import DamagedFileError
from kvorum.spark.metadata_files import FileKind, MetadataFile
from kvorum.spark.record_rows import RecordRow, read_rows
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord, ClientQuotaRecordEntityData
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.records import build_data_batch

TOPIC_ID = bytes(range(16))


def segment(folder: Path, data: bytes, offset: int = 0) -> MetadataFile:
    path = folder / f"{offset:020}.log"
    path.write_bytes(data)
    return MetadataFile(str(path), FileKind.SEGMENT, offset)


def batch(*values: bytes, base_offset: int = 5) -> bytes:
    return build_data_batch(
        values, base_offset=base_offset, epoch=3, timestamp_ms=1_700_000_000_123
    )


def test_a_row_tells_what_its_record_is_about(tmp_path: Path) -> None:
    record = encode_record(TopicRecord(name="größe", topic_id=TOPIC_ID), 0)
    (row,) = read_rows(segment(tmp_path, batch(record), 5))
    assert row == RecordRow(
        offset=5, epoch=3, timestamp_ms=1_700_000_000_123, record_kind="metadata",
        type="TOPIC_RECORD", version=0,
        key_fields={"topic_name": "größe", "topic_id": "AAECAwQFBgcICQoLDA0ODw"},
        json='{"name":"größe","topicId":"AAECAwQFBgcICQoLDA0ODw"}',
    )  # fmt: skip


def test_numbers_are_written_as_kafkas_tools_write_them(tmp_path: Path) -> None:
    entity = [ClientQuotaRecordEntityData(entity_type="user", entity_name=None)]
    quota = ClientQuotaRecord(entity=entity, key="producer_byte_rate", value=1e7)
    (row,) = read_rows(segment(tmp_path, batch(encode_record(quota, 0))))
    assert '"value":1.0E7,' in row.json
    assert row.key_fields == {"name": "producer_byte_rate"}


def test_an_empty_segment_has_no_rows(tmp_path: Path) -> None:
    assert list(read_rows(segment(tmp_path, b""))) == []


@pytest.mark.parametrize(
    ("damage", "offset", "reason"),
    [
        pytest.param(b"\x00" * 10, 6, "cut off", id="a torn tail"),
        pytest.param(batch(b"\x01\x7f\x00", base_offset=6), 6, "type 127", id="an unknown type"),
        pytest.param(batch(b"\x02\x02\x00", base_offset=6), 6, "frame version 2", id="a new frame"),
        pytest.param(
            batch(b"\x01\x02\x00\x01", base_offset=6), 6, "TopicRecord", id="half a record"
        ),
    ],
)
def test_rows_before_the_damage_are_handed_out_and_then_it_is_named(
    tmp_path: Path, damage: bytes, offset: int, reason: str
) -> None:
    good = batch(encode_record(TopicRecord(name="t", topic_id=TOPIC_ID), 0))
    file = segment(tmp_path, good + damage, 5)
    rows = read_rows(file)
    assert next(rows).offset == 5
    with pytest.raises(DamagedFileError, match=reason) as caught:
        next(rows)
    assert (caught.value.file, caught.value.offset) == (file.path, offset)


def test_the_error_travels_between_processes() -> None:
    error = DamagedFileError(file="f.log", offset=7, reason="torn")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.file, again.offset) == (str(error), "f.log", 7)


def test_arrow_batches_are_bounded_and_times_that_are_none_are_null(tmp_path: Path) -> None:
    row = RecordRow(1, 2, -1, "metadata", "NO_OP_RECORD", 0, {}, "{}")
    file = segment(tmp_path, b"")
    batches = list(arrow_batches(file, [row] * (BATCH_ROWS_MAX + 1)))
    assert [found.num_rows for found in batches] == [BATCH_ROWS_MAX, 1]
    assert batches[1].schema == ARROW_SCHEMA
    assert batches[1].column("timestamp").to_pylist() == [None]
    long = RecordRow(1, 2, 2**62, "metadata", "NO_OP_RECORD", 0, {}, "x" * 5_000_000)
    assert [found.num_rows for found in arrow_batches(file, [long] * 3)] == [2, 1]
