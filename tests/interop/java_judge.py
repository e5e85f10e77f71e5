"""A Java program that answers questions, one line each, asked from Python."""

import base64
import subprocess
from collections.abc import Mapping
from typing import Self

from tests.support.kafka.java import Java

from kvorum.storage.small_files.java_properties import store_java_properties


class JavaJudge:
    """One Java process, of the class of that name in `JAVA_SOURCES`; use as a context."""

    def __init__(self, java: Java, name: str) -> None:
        self._process = subprocess.Popen(
            java.program(name), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def answer(self, *parts: str) -> str:
        """Return ``=`` and the value, or ``!`` and the message."""
        line = " ".join(base64.b64encode(part.encode()).decode() for part in parts)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return base64.b64decode(self._process.stdout.readline()).decode()


class ConfigJudge(JavaJudge):
    """One Java process that answers questions about configuration; use as a context."""

    def __init__(self, java: Java) -> None:
        super().__init__(java, "ConfigJudge")

    def ask(self, *parts: str | Mapping[str, str]) -> str:
        """Return ``=`` and the value, or ``!`` and the message; mappings become properties."""
        texts = [
            part if isinstance(part, str) else store_java_properties(part.items(), comments=[])
            for part in parts
        ]
        return self.answer(*texts).replace("!requirement failed: ", "!", 1)
