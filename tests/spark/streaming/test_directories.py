"""A stream over growing directories, without Spark: places, units of work, and their rows."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.support.spark.small_logs import LOG_FOLDER, START_MS, SmallLog, random_batch, write_log
from tests.support.spark.streaming_reads import MicroBatches, Row, start_patiently

from kvorum.log_files.errors import LogFilesError
from kvorum.spark import KvorumMetadataSource
from kvorum.spark.errors import DamagedFileError, OptionError
from kvorum.spark.metadata_source.columns import columns_named
from kvorum.spark.metadata_source.directory_stream import DirectoryStreamReader
from kvorum.spark.streaming.directory_planner import from_checkpoint, to_checkpoint
from kvorum.spark.streaming.options import directory_options, stream_options
from kvorum.wire.records import RecordBatch, read_batches


def all_batches(log: SmallLog) -> list[RecordBatch]:
    return [batch for name in log.segments for batch in log.batches[name]]


def end_of(log: SmallLog) -> int:
    return all_batches(log)[-1].next_offset


def append(log: SmallLog, random: Random, *, epoch: int = 99, is_rolled: bool = False) -> bytes:
    """Append a batch, in a new segment if asked; return its bytes."""
    end = end_of(log)
    data = random_batch(random, offset=end, epoch=epoch, time=START_MS)
    name = f"{end:020}.log" if is_rolled else log.segments[-1]
    with (log.inner / name).open("ab") as file:
        file.write(data)
    log.batches[name] = list(read_batches((log.inner / name).read_bytes()))
    return data


COLUMNS = columns_named(["path", "offset", "epoch", "file_kind", "type", "damage"])


class Stream(MicroBatches):
    """A stream over directories, each of whose micro-batches is read twice."""

    def __init__(self, path: Path, **options: str) -> None:
        given = {"path": str(path), **options}
        super().__init__(
            lambda: DirectoryStreamReader(stream_options(given), directory_options(given), COLUMNS)
        )

    def read(self) -> list[Row]:
        rows = super().read()
        assert rows == super().read()
        return rows


def offsets(rows: list[Row]) -> list[int]:
    assert [row["damage"] for row in rows if row["damage"]] == []
    return [row["offset"] for row in rows]


def damages(rows: list[Row]) -> list[str]:
    return [row["damage"] for row in rows if row["damage"]]


@pytest.fixture
def log(tmp_path: Path) -> SmallLog:
    return write_log(tmp_path / "node", Random(5))


def test_every_record_comes_once_as_a_log_grows(log: SmallLog, tmp_path: Path) -> None:
    stream = Stream(tmp_path, maxPartitionBytes="300")
    random = Random(1)
    assert offsets(stream.advance()) == list(range(end_of(log)))
    assert stream.advance() == []
    for step in range(6):
        begin = end_of(log)
        append(log, random, is_rolled=step % 3 == 1)
        append(log, random, is_rolled=step % 3 == 2)
        if step % 2:
            stream.restart()
        assert offsets(stream.advance()) == list(range(begin, end_of(log)))
        assert stream.advance() == []


@pytest.mark.parametrize("bound", [1, 5, 1000])
def test_a_bound_makes_smaller_micro_batches(log: SmallLog, tmp_path: Path, bound: int) -> None:
    stream = Stream(tmp_path, maxOffsetsPerTrigger=str(bound))
    found: list[int] = []
    while rows := stream.advance():
        assert len(rows) < bound + 5
        found += offsets(rows)
    assert found == list(range(end_of(log)))


def test_a_batch_that_is_not_written_to_its_end_waits(log: SmallLog, tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.advance()
    begin = end_of(log)
    data = append(log, Random(1))
    file = log.inner / log.segments[-1]
    whole = file.read_bytes()
    for count in (1, 61, len(data) - 1):
        file.write_bytes(whole[: len(whole) - len(data) + count])
        assert stream.advance() == []
    file.write_bytes(whole[: len(whole) - len(data) + 30] + bytes(len(data) + 600))
    assert stream.advance() == []
    file.write_bytes(whole)
    assert offsets(stream.advance()) == list(range(begin, end_of(log)))


def test_damage_is_reported_and_does_not_end_the_stream(log: SmallLog, tmp_path: Path) -> None:
    stream = Stream(tmp_path, mode="permissive")
    stream.advance()
    begin = end_of(log)
    append(log, Random(1))
    file = log.inner / log.segments[-1]
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(bytes(data))
    middle = end_of(log)
    assert ["checksum" in text for text in damages(stream.advance())] == [True]
    append(log, Random(2))
    rows = stream.advance()
    (text,) = damages(rows)
    assert f"offsets {begin} to {middle - 1} are missing" in text or f"{begin} is missing" in text
    assert [row["offset"] for row in rows if not row["damage"]] == list(range(middle, end_of(log)))


def test_directories_that_appear_are_read_from_their_begin(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    assert stream.advance() == []
    first = write_log(tmp_path / "a", Random(1))
    assert offsets(stream.advance()) == list(range(end_of(first)))
    second = write_log(tmp_path / "deep" / "b", Random(2), node=2)
    append(first, Random(3))
    rows = stream.advance()
    assert {row["path"] for row in rows} >= {str(second.inner / name) for name in second.segments}
    assert len(rows) == end_of(second) + all_batches(first)[-1].record_count


def test_the_latest_records_are_those_after_the_start(log: SmallLog, tmp_path: Path) -> None:
    stream = Stream(tmp_path, startingOffsets="latest")
    assert stream.advance() == []
    begin = end_of(log)
    append(log, Random(1))
    assert offsets(stream.advance()) == list(range(begin, end_of(log)))


def test_a_log_that_begins_with_a_snapshot_gives_its_rows_once(
    log: SmallLog, tmp_path: Path
) -> None:
    (log.inner / log.segments[0]).unlink()
    stream = Stream(tmp_path)
    rows = stream.advance()
    base = int(log.segments[1][:20])
    assert {row["file_kind"] for row in rows} == {"snapshot", "segment"}
    segment = [row["offset"] for row in rows if row["file_kind"] == "segment"]
    assert segment == list(range(base, end_of(log)))
    append(log, Random(1))
    assert {row["file_kind"] for row in stream.advance()} == {"segment"}


def test_a_first_segment_that_no_snapshot_covers_is_reported(log: SmallLog, tmp_path: Path) -> None:
    (log.inner / log.segments[0]).unlink()
    (log.inner / log.snapshots[0]).unlink()
    with pytest.raises(DamagedFileError, match="no segment has the records before"):
        Stream(tmp_path).advance()


def read_in_part(log: SmallLog, tmp_path: Path, mode: str) -> Stream:
    """Return a stream that has read only some of the first segment."""
    stream = Stream(tmp_path, mode=mode, maxOffsetsPerTrigger="1")
    stream.advance()
    unbounded = Stream(tmp_path, mode=mode)
    unbounded.committed = stream.committed
    unbounded.restart()
    return unbounded


def test_segments_that_are_deleted_unread_are_reported(log: SmallLog, tmp_path: Path) -> None:
    stream = read_in_part(log, tmp_path, "permissive")
    read = log.batches[log.segments[0]][0].next_offset
    base = int(log.segments[1][:20])
    (log.inner / log.segments[0]).unlink()
    rows = stream.advance()
    (text,) = damages(rows)
    assert text.startswith("deleted")
    assert str(base - 1) in text
    assert [row["offset"] for row in rows if row["damage"]] == [read]
    sound = [row for row in rows if not row["damage"]]
    assert {row["file_kind"] for row in sound} == {"snapshot", "segment"}
    segment = [row["offset"] for row in sound if row["file_kind"] == "segment"]
    assert segment == list(range(base, end_of(log)))
    assert stream.advance() == []


def test_segments_that_are_deleted_unread_end_a_strict_stream(
    log: SmallLog, tmp_path: Path
) -> None:
    stream = read_in_part(log, tmp_path, "failfast")
    (log.inner / log.segments[0]).unlink()
    with pytest.raises(DamagedFileError, match="deleted"):
        stream.advance()


def test_segments_that_are_deleted_after_they_were_read_are_no_loss(
    log: SmallLog, tmp_path: Path
) -> None:
    stream = Stream(tmp_path)
    stream.advance()
    begin = end_of(log)
    append(log, Random(1), is_rolled=True)
    for name in log.segments[:-1]:
        (log.inner / name).unlink()
    assert offsets(stream.advance()) == list(range(begin, end_of(log)))


def rewrite_the_end(log: SmallLog, *, epoch: int, count: int) -> int:
    """Truncate the last segment by its last batch, write others; return the offset of the cut."""
    name = log.segments[-1]
    last = log.batches[name].pop()
    file = log.inner / name
    file.write_bytes(file.read_bytes()[: last.position])
    for number in range(count):
        append(log, Random(100 + number), epoch=epoch)
    return last.base_offset


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_log_that_was_truncated_is_reported_and_read_again(
    log: SmallLog, tmp_path: Path, count: int
) -> None:
    stream = Stream(tmp_path, mode="permissive")
    stream.advance()
    read = end_of(log)
    rewrite_the_end(log, epoch=100, count=count)
    stream.restart()
    rows = stream.advance()
    (text,) = damages(rows)
    assert f"truncated below offset {read}" in text
    segment = int(log.segments[-1][:20])
    assert [row["offset"] for row in rows if not row["damage"]] == list(range(segment, end_of(log)))
    # Not even an empty micro-batch follows.
    assert not stream.plan()
    begin = end_of(log)
    append(log, Random(1), epoch=101)
    assert offsets(stream.advance()) == list(range(begin, end_of(log)))


def test_a_log_that_lost_its_last_segment_is_reported(log: SmallLog, tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.advance()
    (log.inner / log.segments[-1]).unlink()
    with pytest.raises(DamagedFileError, match="truncated below offset"):
        stream.advance()


def test_a_log_that_is_truncated_between_plan_and_work_is_reported(
    log: SmallLog, tmp_path: Path
) -> None:
    stream = Stream(tmp_path)
    stream.advance()
    append(log, Random(1))
    assert stream.plan()
    file = log.inner / log.segments[-1]
    data = bytearray(file.read_bytes())
    last = all_batches(log)[-1]
    batch = random_batch(Random(1), offset=last.base_offset, epoch=100, time=START_MS + 1)
    assert len(batch) == last.size
    data[last.position :] = batch
    file.write_bytes(bytes(data))
    log.batches[log.segments[-1]][-1] = next(read_batches(batch))
    with pytest.raises(DamagedFileError, match="since the work was planned"):
        stream.advance()


def test_everything_that_is_gone_between_plan_and_work_is_reported(
    log: SmallLog, tmp_path: Path
) -> None:
    stream = Stream(tmp_path, mode="permissive")
    stream.advance()
    begin = end_of(log)
    append(log, Random(1))
    assert stream.plan()
    shutil.rmtree(log.inner)
    (row,) = stream.advance()
    assert row["offset"] == begin
    assert "gone" in row["damage"] or "any more" in row["damage"]
    # The rest of the tree may still be there, without anything to read.
    assert stream.advance() == []


def test_the_checkpoint_has_the_places_of_all_logs(log: SmallLog, tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    stream.advance()
    assert stream.committed is not None
    assert list(stream.committed["logs"]) == [str(tmp_path / "node" / LOG_FOLDER)]
    assert to_checkpoint(from_checkpoint(stream.committed)) == stream.committed
    with pytest.raises(LogFilesError, match="is not one of directories"):
        from_checkpoint({"offset": 1})


def wrong_options() -> Iterator[tuple[dict[str, str], str]]:
    yield {"startingOffsets": "7"}, "it is earliest or latest"
    yield {"startingOffsets": "now"}, "earliest, latest, or an offset"
    yield {"maxOffsetsPerTrigger": "0"}, "it is 1 at least"
    yield {"retryTimeoutMs": "5"}, "together with option 'controllers'"
    yield {"pushFilters": "true"}, "no option 'pushfilters'"


@pytest.mark.parametrize(("options", "said"), list(wrong_options()))
def test_a_wrong_option_is_named(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Stream(tmp_path, **options)


# pyspark leaves sockets to the garbage collector.


def run(spark: SparkSession, folder: Path, **options: str) -> None:
    """Run a query over everything there is, from where the one before ended, and end it."""
    spark.dataSource.register(KvorumMetadataSource)
    table = spark.readStream.format("kvorum-metadata").options(**options).load()
    sink = (
        table.writeStream.format("parquet")
        .option("path", str(folder / "rows"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
    )
    start_patiently(sink.start, has_ended_well).awaitTermination()


def has_ended_well(query: StreamingQuery) -> bool:
    try:
        query.awaitTermination()
    except PySparkException:
        return False
    return True


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.slow
def test_a_growing_directory_is_read_once_through_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    logs = tmp_path / "logs"
    first = write_log(logs / "a", Random(1))
    run(spark, tmp_path, path=str(logs), columns="path,offset,type")
    append(first, Random(2))
    append(first, Random(3), is_rolled=True)
    second = write_log(logs / "b", Random(4), node=2)
    run(spark, tmp_path, path=str(logs), columns="path,offset,type")
    rows = spark.read.parquet(str(tmp_path / "rows")).collect()
    for log in (first, second):
        found = sorted(row["offset"] for row in rows if row["path"].startswith(str(log.folder)))
        assert found == list(range(end_of(log)))
    assert len(rows) == end_of(first) + end_of(second)


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"controllers": "somewhere"}, "an address is host:port"),
        ({"controllers": "127.0.0.1:1", "retryTimeoutMs": "0"}, "no leader of the quorum"),
    ],
)
def test_what_is_wrong_is_named(
    spark: SparkSession, tmp_path: Path, options: dict[str, str], said: str
) -> None:
    with pytest.raises(PySparkException, match=said):
        run(spark, tmp_path, **options)
