"""The outcome of a login by a program in another language."""

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.interop.clients.franz_go import NEEDS_GO, compiled_program
from tests.interop.clients.kafkajs import NEEDS_NODE, KafkajsPrograms

FRANZ_GO: Final = "franz-go"
KAFKAJS: Final = "kafkajs"
LOGIN_CLIENTS: Final = (
    pytest.param(FRANZ_GO, marks=NEEDS_GO),
    pytest.param(KAFKAJS, marks=NEEDS_NODE),
)


class LoginProgram:
    """A program that logs in once, and prints that it is let in or why not."""

    def __init__(self, client: str, folder: Path) -> None:
        self.client = client
        self._command: Sequence[str] = (
            [str(compiled_program("login", folder))]
            if client == FRANZ_GO
            else KafkajsPrograms(folder / client).command("login")
        )

    def outcome(self, port: int, **settings: str | None) -> str:
        """Return what is printed, without the port; settings of None are left out.

        The settings are those that the program's first lines name.
        """
        given = {key: value for key, value in settings.items() if value is not None}
        argument = json.dumps({"port": port, **given})
        done = subprocess.run(
            [*self._command, argument], capture_output=True, text=True, check=True
        )
        return done.stdout.strip().replace(f":{port}", "")
