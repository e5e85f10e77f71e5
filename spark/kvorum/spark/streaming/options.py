"""The options of a stream, checked: one clear line for each that is wrong."""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple

from kvorum.log_files.find import METADATA_SEARCH
from kvorum.quorum_client.client import QuorumPlan
from kvorum.quorum_client.connection import parse_addresses
from kvorum.spark.damage_modes import Mode, parse_mode
from kvorum.spark.errors import OptionError
from kvorum.spark.source_options import (
    FILE_OPTIONS,
    FileOptions,
    file_options,
    given_options,
    number_option,
)
from kvorum.spark.streaming.security_options import PREFIX, SECURITY_OPTIONS, security_options

RETRY_TIMEOUT_MS: Final = 60_000
"""The time for which a leader is looked for: an election takes a few seconds."""
STREAM_OPTIONS: Final = ("controllers", "startingOffsets", "maxOffsetsPerTrigger", "retryTimeoutMs")
_BOTH: Final = ("json", "structs")


class Starting(Enum):
    """The begin of a stream without a checkpoint, if not at an offset."""

    EARLIEST = "earliest"
    LATEST = "latest"


class StreamOptions(NamedTuple):
    """The way in which a stream of either kind goes on.

    `starting` is a place or an offset. `offsets_max` bounds what a micro-batch takes; None for no
    bound.
    """

    starting: Starting | int
    offsets_max: int | None
    mode: Mode


def is_quorum(options: Mapping[str, str]) -> bool:
    """Return whether the options name controllers."""
    return any(name.lower() == "controllers" for name in options)


def stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Return how a stream goes on; `OptionError` for an unknown option or a wrong value."""
    given = given_options(options, (*FILE_OPTIONS, *_BOTH, *STREAM_OPTIONS, *SECURITY_OPTIONS))
    return StreamOptions(
        _starting(given.get("startingoffsets", Starting.EARLIEST.value)),
        number_option(given, "maxOffsetsPerTrigger", lowest=1),
        parse_mode(given.get("mode", Mode.FAILFAST.value)),
    )


def quorum_options(options: Mapping[str, str]) -> QuorumPlan:
    """Return which quorum is read; `OptionError` for options that are of files only.

    The cluster's id is None where the controllers are asked for it. Raises `ClientOptionError` for
    wrong addresses, and for wrong options of their security.
    """
    given = {name.lower(): value for name, value in options.items()}
    for name in ("path", "paths", "maxPartitionBytes", "node.id"):
        if name.lower() in given:
            raise OptionError(f"options 'controllers' and {name!r} do not go together")
    timeout_ms = number_option(given, "retryTimeoutMs", lowest=0)
    return QuorumPlan(
        addresses=parse_addresses(given.get("controllers", "")),
        leader=None,
        leader_epoch=0,
        retry_timeout_s=(RETRY_TIMEOUT_MS if timeout_ms is None else timeout_ms) / 1000,
        cluster_id=given.get("cluster.id"),
        security=security_options(options),
    )


def directory_options(options: Mapping[str, str]) -> FileOptions:
    """Return which files are read; `OptionError` for an option that is of a quorum only."""
    for name in options:
        if name.lower() == "retrytimeoutms" or name.lower().startswith(PREFIX):
            raise OptionError(f"option {name!r} goes together with option 'controllers' only")
    return file_options(options, METADATA_SEARCH)


def _starting(text: str) -> Starting | int:
    text = text.strip().lower()
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        return Starting(text)
    except ValueError:
        raise OptionError(
            f"option 'startingOffsets' is {text!r}: it is earliest, latest, or an offset"
        ) from None
