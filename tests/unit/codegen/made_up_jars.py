"""Jars that hold what a test wants to be in them: schemas, and class files of enums."""

import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

Argument: TypeAlias = str | int | tuple[str, str] | None
ERRORS = "org/apache/kafka/common/protocol/Errors.class"


class Assembler:
    """Builds the class file of an enum: just enough of it to hold constants."""

    def __init__(self) -> None:
        self._pool: list[bytes] = []

    def _add(self, entry: bytes) -> int:
        self._pool.append(entry)
        return len(self._pool)

    def utf8(self, text: str) -> int:
        data = text.encode()
        return self._add(struct.pack(">BH", 1, len(data)) + data)

    def string(self, text: str) -> int:
        return self._add(struct.pack(">BH", 8, self.utf8(text)))

    def field(self, owner: str, name: str) -> int:
        described = self._add(struct.pack(">BHH", 12, self.utf8(name), self.utf8("LE;")))
        of_class = self._add(struct.pack(">BH", 7, self.utf8(owner)))
        return self._add(struct.pack(">BHH", 9, of_class, described))

    def pushed(self, argument: Argument) -> bytes:
        """Return the instruction that pushes a literal, or a static field: (class, name)."""
        if argument is None:
            return b"\x01"
        if isinstance(argument, int):
            return b"\x11" + struct.pack(">h", argument)
        if isinstance(argument, str):
            return b"\x13" + struct.pack(">H", self.string(argument))
        return b"\xb2" + struct.pack(">H", self.field(*argument))

    def constant(self, owner: str, name: str, ordinal: int, *arguments: Argument) -> bytes:
        """Return the instructions that make one constant and store it."""
        return b"".join(
            (
                b"\xbb" + struct.pack(">H", 1) + b"\x59",
                *(self.pushed(argument) for argument in (name, ordinal, *arguments)),
                b"\xb7" + struct.pack(">H", 1),
                b"\xb3" + struct.pack(">H", self.field(owner, name)),
            )
        )

    def class_file(self, code: bytes) -> bytes:
        name, kind = self.utf8("<clinit>"), self.utf8("()V")
        attribute = self.utf8("Code")
        body = struct.pack(">HHI", 8, 0, len(code)) + code + bytes(4)
        method = struct.pack(">HHHH", 8, name, kind, 1) + struct.pack(">HI", attribute, len(body))
        head = struct.pack(">IIH", 0xCAFEBABE, 61, len(self._pool) + 1) + b"".join(self._pool)
        return head + bytes(6) + bytes(2) + bytes(2) + struct.pack(">H", 1) + method + body


def enum_class(
    owner: str, constants: Mapping[str, Sequence[Argument]], **second_names: str
) -> bytes:
    """Return the class file of an enum; a second name is a static field that is a constant."""
    assembler = Assembler()
    code = b"".join(
        assembler.constant(owner, name, ordinal, *arguments)
        for ordinal, (name, arguments) in enumerate(constants.items())
    )
    code += b"\xb8" + struct.pack(">H", 1) + b"\xb3"
    code += struct.pack(">H", assembler.field(owner, "$VALUES"))
    for second, first in second_names.items():
        code += assembler.pushed((owner, first)) + b"\xb3"
        code += struct.pack(">H", assembler.field(owner, second))
    return assembler.class_file(code + b"\xb1")


def errors_class(**others: tuple[int, str]) -> bytes:
    """Return the class file of two error codes and `others`."""
    two = {"UNKNOWN_SERVER_ERROR": (-1, "It went wrong."), "NONE": (0, None)}
    return enum_class("Errors", {**two, **others})


def make_jar(file: Path, **entries: str | bytes) -> Path:
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file
