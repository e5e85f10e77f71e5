"""The files of a log directory that kafka-dump-log can read."""

from __future__ import annotations

from pathlib import Path

SUFFIXES = (".log", ".checkpoint", ".index", ".timeindex", ".txnindex", ".snapshot")


def log_files(folder: Path) -> list[Path]:
    """Every file the tool knows."""
    return sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES)
