"""Kafka's plain-text checkpoint files: version, number of entries, one entry a line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kvorum.storage.errors import CorruptFileError, UnknownVersionError

_VERSION = 0


def encode_checkpoint(entries: Sequence[str]) -> bytes:
    """Return the bytes of a checkpoint file that holds the given lines."""
    return "".join(f"{line}\n" for line in (_VERSION, len(entries), *entries)).encode()


def decode_checkpoint(data: bytes, file: Path, *, advice: str) -> list[str]:
    """Return the entry lines of a checkpoint file; an empty file has none, as in Kafka."""
    lines = data.decode("utf-8", "replace").splitlines()
    if not lines:
        return []
    version = _number(lines[0], file, advice)
    if version != _VERSION:
        problem = f"unrecognised version {version}, expected {_VERSION}"
        raise UnknownVersionError(problem, file=file, advice=advice)
    count = _number(lines[1], file, advice) if len(lines) > 1 else 0
    entries = lines[2:]
    if len(entries) != count:
        problem = f"{count} entries announced, {len(entries)} found"
        raise CorruptFileError(problem, file=file, advice=advice)
    return entries


def _number(line: str, file: Path, advice: str) -> int:
    try:
        return int(line)
    except ValueError as error:
        problem = f"malformed line {line!r}"
        raise CorruptFileError(problem, file=file, advice=advice) from error
