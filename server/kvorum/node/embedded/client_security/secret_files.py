"""Files that their owner alone may read."""

import os
from pathlib import Path
from typing import Final

OWNER_ALONE: Final = 0o600

SECURITY_FOLDER: Final = "security"
"""The folder with the keys and users of clients with security, in that of the cluster."""


def write_secret(path: Path, data: bytes) -> None:
    """Write a file that its owner alone may read, in place of one that is there."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ALONE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
