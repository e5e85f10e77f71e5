"""The scan of a .log file's batches, in big reads, with a check of each batch."""

from collections.abc import Iterator

from kvorum.storage.files import ReadableFile
from kvorum.storage.log.batch_header import HEADER_SIZE, BatchHeader, batch_problem, header_at

# One read covers thousands of batches; a bigger batch gets a read of its own.
CHUNK_BYTES = 8 * 1024 * 1024


class BadBatchError(Exception):
    """The bytes at `position` are not a whole and sound batch."""

    def __init__(self, position: int, problem: str) -> None:
        self.position = position
        self.problem = problem
        super().__init__(f"{problem} (at byte {position})")


def scan_batches(
    file: ReadableFile, *, end: int, position: int = 0, verify: bool = True
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of each batch between `position` and `end`.

    Checks every header, that the batch ends before `end`, and with `verify` the checksum. Raises
    BadBatchError at the first invalid batch; the batches yielded before are valid.
    """
    while position < end:
        chunk = memoryview(file.read_at(position, min(CHUNK_BYTES, end - position)))
        used = 0
        while (header := header_at(chunk, used)) is not None:
            problem = header.problem()
            if problem is None and position + used + header.size > end:
                missing = position + used + header.size - end
                problem = f"a batch of {header.size} bytes lacks its last {missing}"
            if problem is not None:
                raise BadBatchError(position + used, problem)
            if len(chunk) - used < header.size:
                break
            batch = chunk[used : used + header.size]
            problem = batch_problem(batch, header) if verify else None
            if problem is not None:
                raise BadBatchError(position + used, problem)
            yield position + used, header
            used += header.size
        if used == 0:
            header = _one_big_batch(file, position, end=end, verify=verify)
            yield position, header
            used = header.size
        position += used


def _one_big_batch(file: ReadableFile, position: int, *, end: int, verify: bool) -> BatchHeader:
    """Return the header of a batch that one chunk could not hold, or that is cut off."""
    start = file.read_at(position, min(HEADER_SIZE, end - position))
    header = header_at(start)
    if header is None:
        raise BadBatchError(position, f"{len(start)} bytes are less than a batch header")
    if not verify:
        return header
    batch = memoryview(file.read_at(position, header.size))
    if len(batch) < header.size:
        raise BadBatchError(position, f"a batch of {header.size} bytes ends after {len(batch)}")
    problem = batch_problem(batch, header)
    if problem is not None:
        raise BadBatchError(position, problem)
    return header
