"""Kafka's own configuration classes, asked from Python."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.kafka.java import Java

from kvorum.storage.java_properties import store_java_properties

SOURCE = Path(__file__).parent / "java" / "ConfigJudge.java"


class ConfigJudge:
    """One Java process that answers questions about configuration; use as a context."""

    def __init__(self, java: Java) -> None:
        command = java.command("ConfigJudge", classes=java.compile(SOURCE), log_level="OFF")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def ask(self, *parts: str | Mapping[str, str]) -> str:
        """Return ``=`` and the value, or ``!`` and the message; mappings become properties."""
        texts = [
            part if isinstance(part, str) else store_java_properties(part.items(), comments=[])
            for part in parts
        ]
        line = " ".join(base64.b64encode(text.encode()).decode() for text in texts)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = base64.b64decode(self._process.stdout.readline()).decode()
        return answer.replace("!requirement failed: ", "!", 1)
