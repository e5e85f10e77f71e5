"""Kafka's own message classes, asked through a Java program."""

import re
import struct
import subprocess
import tempfile
import zipfile
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Final

from tests.support.kafka.java import Java

SOURCE = Path(__file__).resolve().parents[1] / "java" / "CodecOracle.java"
CONVERTER: Final = re.compile(r"(org/apache/kafka/[\w/]+)JsonConverter\.class")
_HEAD = struct.Struct(">ihi")
_LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Judged:
    """A message as Kafka writes it: its bytes and its JSON, or why Kafka refuses it."""

    message: str
    version: int
    data: bytes
    json: bytes
    refusal: str = ""


def message_name(class_name: str) -> str:
    """Return the message that a class carries: only those of the wire have a suffix."""
    return re.sub(r"(Request|Response|Header)Data\Z", r"\1", class_name.rpartition(".")[2])


@dataclass(frozen=True)
class CodecOracle:
    """Runs the Java program; its classes are all that Kafka's jars hold."""

    java: Java

    @cached_property
    def class_names(self) -> list[str]:
        """Every generated message class that has a JSON converter."""
        found: set[str] = set()
        for jar in self.java.jars.glob("kafka-*.jar"):
            with zipfile.ZipFile(jar) as archive:
                matches = (CONVERTER.fullmatch(name) for name in archive.namelist())
                found |= {match[1].replace("/", ".") for match in matches if match}
        return sorted(found)

    @cached_property
    def message_names(self) -> list[str]:
        """The message of each class."""
        return [message_name(name) for name in self.class_names]

    def random(self, *, seed: int, count: int) -> Generator[Judged, None, None]:
        """Yield `count` random messages of every class and version; close what is not read."""
        yield from self._run("random", str(seed), str(count), questions=())

    def echo(self, questions: Iterable[tuple[str, int, bytes]]) -> Generator[Judged, None, None]:
        """Yield what Kafka makes of messages of ours: (name, version, bytes)."""
        yield from self._run("echo", questions=questions)

    def _run(
        self, mode: str, *arguments: str, questions: Iterable[tuple[str, int, bytes]]
    ) -> Iterator[Judged]:
        with tempfile.TemporaryDirectory() as name, tempfile.TemporaryFile() as asked:
            names = Path(name) / "classes"
            names.write_text("\n".join(self.class_names) + "\n")
            self._write_questions(asked, questions)
            command = self.java.command(
                "CodecOracle",
                *(mode, str(names), *arguments),
                heap_mb=512,
                classes=self.java.compile(SOURCE),
            )
            with subprocess.Popen(command, stdin=asked, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                yield from self._answers(process.stdout)
                assert process.wait() == 0

    def _write_questions(
        self, file: IO[bytes], questions: Iterable[tuple[str, int, bytes]]
    ) -> None:
        index_of = {name: index for index, name in enumerate(self.message_names)}
        for name, version, data in questions:
            file.write(_HEAD.pack(index_of[name], version, len(data)) + data)
        file.seek(0)

    def _answers(self, stream: IO[bytes]) -> Iterator[Judged]:
        while head := stream.read(_HEAD.size):
            index: int
            index, version, length = _HEAD.unpack(head)
            data = stream.read(max(length, 0))
            json = stream.read(_LENGTH.unpack(stream.read(_LENGTH.size))[0])
            refusal = json.decode() if length < 0 else ""
            yield Judged(self.message_names[index], version, data, json, refusal)
