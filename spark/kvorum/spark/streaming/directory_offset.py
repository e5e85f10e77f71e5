"""The progress of a stream in the logs of directories, as Spark's checkpoint has it.

{"logs": {"/data/__cluster_metadata-0": {"segment": 0, "position": 812, "offset": 9, "epoch": 2,
"lastPosition": 700, "lastCrc": 1203445}}}
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from kvorum.spark.errors import LogFilesError

NO_BATCH: Final = -1
"""The position of the last batch where none of the segment was read."""
_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "segment": "segment",
        "position": "position",
        "offset": "offset",
        "epoch": "epoch",
        "last_position": "lastPosition",
        "last_crc": "lastCrc",
        "again_from": "againFrom",
    }
)


class LogPlace(NamedTuple):
    """A place in a log: byte `position` of the segment that begins at offset `segment`.

    `offset` is the next one, `epoch` the leader epoch of the record before it, -1 where it is not
    known. `last_position` and `last_crc` are those of the batch before the place, by which a log
    that was truncated meanwhile is known. Where that was the case, the records from the segment
    of offset `again_from` on are read again.
    """

    segment: int
    position: int
    offset: int
    epoch: int
    last_position: int = NO_BATCH
    last_crc: int = 0
    again_from: int | None = None


Places = Mapping[str, LogPlace]
"""The place in each log, by its directory."""


def segment_start(base_offset: int) -> LogPlace:
    """Return the place before the first batch of a segment."""
    return LogPlace(base_offset, 0, base_offset, NO_BATCH)


def to_checkpoint(places: Places) -> dict[str, Any]:
    """Return the places as the checkpoint has them; equal ones make equal text."""
    return {"logs": {directory: _log(places[directory]) for directory in sorted(places)}}


def from_checkpoint(found: Mapping[str, Any]) -> dict[str, LogPlace]:
    """Return the places; `LogFilesError` for a checkpoint of anything else."""
    try:
        return {str(directory): _place(log) for directory, log in found["logs"].items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LogFilesError(
            f"the checkpoint's offset {dict(found)} is not one of directories: was the stream "
            "started with other options?"
        ) from None


def _log(place: LogPlace) -> dict[str, int]:
    values = place._asdict()
    return {name: values[field] for field, name in _NAMES.items() if values[field] is not None}


def _place(log: Mapping[str, Any]) -> LogPlace:
    return LogPlace(**{field: int(log[name]) for field, name in _NAMES.items() if name in log})
