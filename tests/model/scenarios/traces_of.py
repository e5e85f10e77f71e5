"""The files of the scenarios and their stored traces."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "traces"


FILES = sorted(FOLDER.glob("*.txt"))
