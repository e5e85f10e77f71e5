"""Kafka's own serdes of internal topics, asked through a Java program."""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.kafka.java import Java

SOURCE = Path(__file__).resolve().parents[1] / "java" / "InternalTopics.java"


class TopicRecord(NamedTuple):
    """A record of an internal topic as it is stored."""

    topic: str
    key: bytes | None
    value: bytes | None


class Answer(NamedTuple):
    """What Kafka makes of a record: bytes that it writes itself, and JSON; or why it refuses it."""

    key: bytes | None
    value: bytes | None
    json: dict[str, Any]
    refusal: str


@dataclass(frozen=True)
class InternalTopics:
    """Runs the Java program."""

    java: Java

    def facts(self) -> dict[str, dict[str, str]]:
        """Return the record types of each topic, and the states that records hold, by number."""
        found: dict[str, dict[str, str]] = json.loads(self._run("facts", ""))
        return found

    def remote_log_values(self) -> list[bytes]:
        """Return a value of each record type of tiered storage, made by Kafka's serde."""
        return [bytes.fromhex(line) for line in self._run("remote", "").splitlines()]

    def echo(self, records: Iterable[TopicRecord]) -> list[Answer]:
        """Return what Kafka makes of each record."""
        lines = [f"{topic} {_text(key)} {_text(value)}\n" for topic, key, value in records]
        # Strings of records may contain line separators other than the line feed.
        return [_answer(line) for line in self._run("echo", "".join(lines)).split("\n")[:-1]]

    def _run(self, mode: str, asked: str) -> str:
        command = self.java.command(
            "InternalTopics", mode, heap_mb=512, classes=self.java.compile(SOURCE)
        )
        done = subprocess.run(command, input=asked.encode(), capture_output=True, check=True)
        return done.stdout.decode()


def _answer(line: str) -> Answer:
    if line.startswith("!"):
        return Answer(None, None, {}, line[2:])
    key, value, text = line.split(" ", 2)
    return Answer(_bytes(key), _bytes(value), json.loads(text), "")


def _text(data: bytes | None) -> str:
    return "-" if data is None else data.hex() or "."


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else b"" if text == "." else bytes.fromhex(text)
