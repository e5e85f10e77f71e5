"""Programs of the tests that use kafkajs, a client in JavaScript."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parents[1] / "kafkajs"
"""The programs, and the package that pins the client."""
NEEDS_NODE: Final = pytest.mark.skipif(
    shutil.which("npm") is None, reason="Node.js and npm are not there"
)


class KafkajsPrograms:
    """The programs in a folder of their own, with the client installed beside them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
        options = ("--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
        subprocess.run(["npm", "install", *options], cwd=folder, check=True, capture_output=True)

    def command(self, program: str, *arguments: str) -> list[str]:
        """Return the command line that runs a program."""
        return ["node", str(self._folder / f"{program}.js"), *arguments]
