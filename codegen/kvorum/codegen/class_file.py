"""The part of Java's class file format that contains the constants of an enum.

Kafka's error codes and feature levels are no schemas but enums in its jars. The static initialiser
of an enum pushes the arguments of each constant's constructor in order, so reading its instructions
gives the facts without running Java. Format: chapter 4 of the Java Virtual Machine Specification.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kvorum.codegen.errors import CodegenError

_MAGIC = 0xCAFEBABE
_WIDTHS = {3: 4, 4: 4, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}
_UTF8, _INTEGER, _LONG, _DOUBLE, _STRING, _FIELD = 1, 3, 5, 6, 8, 9
_ACONST_NULL, _ICONST_M1, _ICONST_5, _BIPUSH, _SIPUSH = 0x01, 0x02, 0x08, 0x10, 0x11
_LDC, _LDC_W, _NEW, _GETSTATIC, _PUTSTATIC = 0x12, 0x13, 0xBB, 0xB2, 0xB3
_OPERAND_BYTES = {
    0x59: 0, 0xBA: 4, 0xB7: 2, 0xB8: 2, 0xB6: 2, 0xB9: 4, 0xBD: 2, 0xBC: 1, 0x57: 0, 0x53: 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StaticField:
    """A static field of a class, such as another enum's constant; `owner` has slashes."""

    owner: str
    name: str


Constant: TypeAlias = str | int | StaticField | None


@dataclass(frozen=True, slots=True)
class EnumConstant:
    """A constant of an enum: its field's name, and what its constructor is given.

    The arguments are literals and static fields; what the initialiser computes is left out.
    """

    name: str
    arguments: tuple[Constant, ...]


class ClassFile:
    """The constant pool and the static initialiser of one class."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pool: dict[int, tuple[int, int]] = {}
        magic, _, count = struct.unpack_from(">IIH", data, 0)
        if magic != _MAGIC:
            raise CodegenError("not a class file")
        self._pos = 10
        self._read_pool(count)

    def enum_constants(self) -> list[EnumConstant]:
        """Return the constants in order; stop at the first other statement of the initialiser."""
        found: list[EnumConstant] = []
        arguments: list[Constant] = []
        for opcode, operand in self._instructions(self._static_initialiser()):
            if opcode == _NEW:
                arguments = []
            elif opcode == _PUTSTATIC:
                if len(arguments) < 3 or not isinstance(arguments[0], str):
                    break
                found.append(EnumConstant(self._field(operand).name, tuple(arguments[2:])))
                arguments = []
            else:
                arguments += self._pushed(opcode, operand)
        return found

    def aliases(self) -> dict[str, str]:
        """Return the static fields that are second names of the class's own constants."""
        found: dict[str, str] = {}
        last: Constant = None
        for opcode, operand in self._instructions(self._static_initialiser()):
            if opcode == _PUTSTATIC and isinstance(last, StaticField):
                field = self._field(operand)
                if field.owner == last.owner:
                    found[field.name] = last.name
            last = self._field(operand) if opcode == _GETSTATIC else None
        return found

    def _pushed(self, opcode: int, operand: int) -> list[Constant]:
        if opcode == _ACONST_NULL:
            return [None]
        if _ICONST_M1 <= opcode <= _ICONST_5:
            return [opcode - 3]
        if opcode in (_BIPUSH, _SIPUSH):
            return [operand]
        if opcode in (_LDC, _LDC_W):
            return [self._constant(operand)]
        if opcode == _GETSTATIC:
            return [self._field(operand)]
        return []

    def _instructions(self, code: bytes) -> Iterator[tuple[int, int]]:
        pos = 0
        while pos < len(code):
            opcode = code[pos]
            if opcode in (_BIPUSH, _LDC):
                form, width = ">b" if opcode == _BIPUSH else ">B", 1
            elif opcode in (_SIPUSH, _LDC_W, _NEW, _GETSTATIC, _PUTSTATIC):
                form, width = ">h" if opcode == _SIPUSH else ">H", 2
            elif _ACONST_NULL <= opcode <= _ICONST_5:
                form, width = "", 0
            elif opcode in _OPERAND_BYTES:
                form, width = "", _OPERAND_BYTES[opcode]
            else:
                return
            yield opcode, struct.unpack_from(form, code, pos + 1)[0] if form else 0
            pos += 1 + width

    def _read_pool(self, count: int) -> None:
        index = 1
        while index < count:
            tag = self._data[self._pos]
            self._pool[index] = (tag, self._pos + 1)
            if tag == _UTF8:
                (length,) = struct.unpack_from(">H", self._data, self._pos + 1)
                self._pos += 3 + length
            elif tag in (_LONG, _DOUBLE):
                self._pos += 9
                index += 1
            else:
                self._pos += 1 + _WIDTHS[tag]
            index += 1

    def _utf8(self, index: int) -> str:
        _, start = self._pool[index]
        (length,) = struct.unpack_from(">H", self._data, start)
        return self._data[start + 2 : start + 2 + length].decode()

    def _constant(self, index: int) -> Constant:
        tag, start = self._pool[index]
        if tag == _STRING:
            return self._utf8(struct.unpack_from(">H", self._data, start)[0])
        if tag == _INTEGER:
            return int(struct.unpack_from(">i", self._data, start)[0])
        raise CodegenError(f"constant {index} of kind {tag} was not expected")

    def _field(self, index: int) -> StaticField:
        _, start = self._pool[index]
        owner, name_and_type = struct.unpack_from(">HH", self._data, start)
        return StaticField(self._named(owner), self._named(name_and_type))

    def _named(self, index: int) -> str:
        """Return the name with which a class, or a field's name and type, begins."""
        return self._utf8(struct.unpack_from(">H", self._data, self._pool[index][1])[0])

    def _static_initialiser(self) -> bytes:
        pos = self._pos + 6
        (interfaces,) = struct.unpack_from(">H", self._data, pos)
        pos += 2 + 2 * interfaces
        for name, attributes in self._members(pos):
            if name == "<clinit>":
                for attribute, start in attributes:
                    if attribute == "Code":
                        (length,) = struct.unpack_from(">I", self._data, start + 4)
                        return self._data[start + 8 : start + 8 + length]
        raise CodegenError("the class has no static initialiser")

    def _members(self, pos: int) -> Iterator[tuple[str, list[tuple[str, int]]]]:
        """Yield each field and method with its attributes: (name, where its content starts)."""
        for _ in range(2):
            (count,) = struct.unpack_from(">H", self._data, pos)
            pos += 2
            for _ in range(count):
                _, name, _, attribute_count = struct.unpack_from(">HHHH", self._data, pos)
                pos += 8
                attributes: list[tuple[str, int]] = []
                for _ in range(attribute_count):
                    attribute, length = struct.unpack_from(">HI", self._data, pos)
                    attributes.append((self._utf8(attribute), pos + 6))
                    pos += 6 + length
                yield self._utf8(name), attributes
