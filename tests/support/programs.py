"""Programs in a Python of their own, run to their end."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.source_tree import ROOT


def run_python(
    *arguments: str,
    folder: Path = ROOT,
    environment: Mapping[str, str] | None = None,
    timeout_s: float | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run this Python with arguments, and return how it ended and what it printed."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
