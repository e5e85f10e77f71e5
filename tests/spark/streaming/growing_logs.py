"""Small logs that grow."""

from random import Random

from tests.support.spark.small_logs import START_MS, SmallLog, random_batch

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
