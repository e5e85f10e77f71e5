"""A small file system that a test can fill."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

DISK_BYTES = 1_000_000


def mount(target: Path, *options: str) -> None:
    """Mount, or skip the test where that is not allowed."""
    if shutil.which("mount") is None:
        pytest.skip("this machine has no mount command")
    done = subprocess.run(
        ["mount", *options, str(target)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root on Linux")
    target = tmp_path / "disk"
    target.mkdir()
    mount(target, "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs")
    yield target
    subprocess.run(["umount", "--lazy", str(target)], check=True)
