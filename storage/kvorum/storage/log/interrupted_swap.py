"""A segment's replacement that a crash interrupted: it is finished, or undone (Kafka's LogLoader).

A cleaned segment is written to ``*.cleaned`` files. Once they are durable they are renamed to
``*.swap``, the old segments to ``*.deleted``, and then the suffix is dropped. So:

1. as long as there is a ``*.cleaned`` file, the new segment may be incomplete: it is removed with
   the ``*.swap`` files of its offset and above, and the old segments are all there;
2. a ``*.swap`` file without one belongs to a complete segment. What is left of the old segments,
   which lie in the offsets of the new one, is removed, and the suffix is dropped.

Old segments above the last batch of the new one stay, as with Kafka: they hold records that are
superfluous, and the next pass of the cleaner meets them again.
"""

from pathlib import Path

from kvorum.storage.errors import CorruptLogError
from kvorum.storage.files import FileSystem, disk_errors, list_if_there
from kvorum.storage.log.segment_scan import BadBatchError, scan_batches
from kvorum.storage.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    PRODUCER_SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    parse_offset_name,
)


def finish_interrupted_swap(directory: Path, files: FileSystem) -> list[str]:
    """Finish or undo the replacement of segments; return the names of the removed files.

    Raises CorruptLogError where a segment that was durable cannot be read; then nothing was
    changed.
    """
    names = list_if_there(files, directory)
    cleaned = _offsets(names, CLEANED_SUFFIX)
    swap = _offsets(names, SWAP_SUFFIX)
    if not cleaned and not swap:
        return []
    incomplete_from = min(cleaned.values(), default=None)
    undone = [*cleaned]
    if incomplete_from is not None:
        undone += [name for name, offset in swap.items() if offset >= incomplete_from]
    complete = [name for name in swap if name not in undone]
    replaced = _replaced(directory, files, names, complete)
    for name in (*undone, *replaced):
        with disk_errors(directory / name, "removing"):
            files.remove(directory / name)
    for name in complete:
        with disk_errors(directory / name, "renaming"):
            files.rename(directory / name, directory / name.removesuffix(SWAP_SUFFIX))
    with disk_errors(directory, "syncing"):
        files.sync_directory(directory)
    return [*undone, *replaced]


def _offsets(names: list[str], suffix: str) -> dict[str, int]:
    """Return the segments' files that end in `suffix`, with their base offsets."""
    found: dict[str, int] = {}
    for name in names:
        parsed = parse_offset_name(name.removesuffix(suffix)) if name.endswith(suffix) else None
        if parsed is not None:
            found[name] = parsed[0]
    return found


def _replaced(
    directory: Path, files: FileSystem, names: list[str], complete: list[str]
) -> list[str]:
    """Return the files of old segments that lie in the offsets of complete new ones."""
    logs = [name for name in complete if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
    if not logs:
        return []
    first = min(_offsets(logs, SWAP_SUFFIX).values())
    end = max(_end_offset(directory / name, files, first) for name in logs)
    replaced: list[str] = []
    for name in names:
        parsed = parse_offset_name(name)
        if parsed is None or not first <= parsed[0] < end:
            continue
        # The state of producers at the first offset is as right as before (KAFKA-12520).
        if parsed != (first, PRODUCER_SNAPSHOT_SUFFIX):
            replaced.append(name)
    return replaced


def _end_offset(path: Path, files: FileSystem, base_offset: int) -> int:
    """Return where the batches of a complete segment end."""
    end_offset = base_offset
    with disk_errors(path, "reading"):
        file = files.open(path, read_only=True)
        try:
            for _, header in scan_batches(file, end=file.size()):
                end_offset = header.next_offset
        except BadBatchError as bad:
            raise CorruptLogError(
                f"{bad.problem}, in a segment that was complete",
                file=path,
                offset=bad.position,
                advice="Remove the *.swap files of that offset if all older segments are there",
            ) from bad
        finally:
            file.close()
    return end_offset
