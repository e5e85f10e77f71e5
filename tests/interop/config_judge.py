"""Kafka's own configuration classes, asked from Python."""

from __future__ import annotations

from collections.abc import Mapping

from tests.interop.java_judge import JavaJudge
from tests.support.kafka.java import Java

from kvorum.storage.java_properties import store_java_properties


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
