"""Generated code for each kind of field, in old and compact encoding, byte by byte."""

from pathlib import Path
from typing import Any

import pytest
from tests.unit.codegen.schemas import class_of, field

from kvorum.wire.errors import DecodeError, EncodeError, UnsupportedVersionError

INNER = [field("int16", name="A"), field("string", "1+", name="B")]

# Type, value, bytes in version 0 (old), bytes in version 2 (compact), without the tagged section.
KINDS: list[tuple[str, Any, str, str]] = [
    ("bool", True, "01", "01"),
    ("int8", -2, "fe", "fe"),
    ("int16", -2, "fffe", "fffe"),
    ("uint16", 65_535, "ffff", "ffff"),
    ("int32", -2, "fffffffe", "fffffffe"),
    ("uint32", 4_294_967_295, "ffffffff", "ffffffff"),
    ("int64", -2, "fffffffffffffffe", "fffffffffffffffe"),
    ("float64", 1.5, "3ff8000000000000", "3ff8000000000000"),
    ("uuid", bytes(range(16)), bytes(range(16)).hex(), bytes(range(16)).hex()),
    ("string", "h\u00e9", "000368c3a9", "0468c3a9"),
    ("string", "x" * 127, "007f" + "78" * 127, "8001" + "78" * 127),
    ("bytes", b"ab", "000000026162", "036162"),
    ("records", b"ab", "000000026162", "036162"),
    ("[]bool", [True, False], "000000020100", "030100"),
    ("[]int8", [1, -1], "0000000201ff", "0301ff"),
    ("[]int32", [1, 2], "000000020000000100000002", "030000000100000002"),
    ("[]int32", [7] * 200, "000000c8" + "00000007" * 200, "c901" + "00000007" * 200),
    ("[]int64", [], "00000000", "01"),
    ("[]uuid", [bytes(16)], "00000001" + "00" * 16, "02" + "00" * 16),
    ("[]string", ["a", ""], "000000020001610000", "03026101"),
    ("[]bytes", [b"a"], "000000010000000161", "020261"),
]


@pytest.mark.parametrize(("kind", "value", "old", "compact"), KINDS)
def test_a_field_in_both_encodings(
    tmp_path: Path, kind: str, value: Any, old: str, compact: str
) -> None:
    probe = class_of(tmp_path, field(kind))
    message = probe(it=value)
    assert message.encode(0).hex() == old
    assert message.encode(2).hex() == compact + "00"
    assert probe.decode(bytes.fromhex(old), 0) == message
    assert probe.decode(bytes.fromhex(compact + "00"), 2) == message


@pytest.mark.parametrize(
    ("kind", "old", "compact"),
    [
        ("string", "ffff", "00"),
        ("bytes", "ffffffff", "00"),
        ("records", "ffffffff", "00"),
        ("[]int32", "ffffffff", "00"),
        ("[]string", "ffffffff", "00"),
        ("Inner", "ff", "ff"),
        ("[]Inner", "ffffffff", "00"),
    ],
)
def test_null_where_it_is_allowed_and_where_not(
    tmp_path: Path, kind: str, old: str, compact: str
) -> None:
    extra: dict[str, Any] = {"fields": INNER} if "Inner" in kind else {}
    probe = class_of(tmp_path, field(kind, nullableVersions="0+", **extra))
    message = probe(it=None)
    if kind == "Inner":
        message.it = None
    assert message.encode(0).hex() == old
    assert message.encode(2).hex() == compact + "00"
    assert probe.decode(bytes.fromhex(old), 0) == message
    strict = class_of(tmp_path, field(kind, nullableVersions="1-1", **extra))
    message = strict()
    message.it = None
    with pytest.raises(EncodeError):
        message.encode(0)
    with pytest.raises(DecodeError):
        strict.decode(bytes.fromhex(old), 0)


def test_structs_alone_and_in_arrays(tmp_path: Path) -> None:
    probe = class_of(tmp_path, field("Inner", fields=INNER))
    inner = probe.Inner(a=1, b="x")
    message = probe(it=inner)
    assert message.encode(1).hex() == "0001" + "000178"
    assert message.encode(2).hex() == "0001" + "0278" + "00" + "00"
    with pytest.raises(UnsupportedVersionError, match="non-default b at version 0"):
        message.encode(0)
    nullable = class_of(tmp_path, field("Inner", fields=INNER, nullableVersions="0+"))
    inner = nullable.Inner(a=1, b="x")
    message = nullable(it=inner)
    assert message.encode(1).hex() == "01" + "0001" + "000178"


def test_tagged_fields_stand_by_tag_and_only_when_not_default(tmp_path: Path) -> None:
    probe = class_of(
        tmp_path,
        field("int32", "2+", name="B", tag=1, taggedVersions="2+"),
        field("string", "2+", name="A", tag=0, taggedVersions="2+", default="d"),
        field("int8", name="C"),
    )
    message = probe(b=5, a="xy", c=9)
    assert message.encode(2).hex() == "09" + "02" + "0003037879" + "010400000005"
    assert probe.decode(message.encode(2), 2) == message
    assert probe().encode(2).hex() == "0000"
    with pytest.raises(UnsupportedVersionError, match="non-default b at version 1"):
        message.encode(1)


@pytest.mark.parametrize("versions", ["0-1", "3+"])
def test_a_field_that_comes_or_goes(tmp_path: Path, versions: str) -> None:
    probe = class_of(tmp_path, field("int8", name="A"), field("int8", versions, name="B"))
    with_it = 0 if versions == "0-1" else 3
    without = 3 - with_it
    message = probe(a=1, b=2)
    assert probe.decode(message.encode(with_it), with_it) == message
    with pytest.raises(UnsupportedVersionError, match="non-default b"):
        message.encode(without)
    message = probe(a=1)
    assert probe.decode(message.encode(without), without) == message
