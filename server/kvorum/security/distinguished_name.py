"""The name of a certificate's subject, as Java's X500Principal writes it in the form of RFC 2253.

The name is read from the certificate's own bytes: libraries that read certificates write a name in
their own way, and a user's name in an ACL has to be the same text as in Kafka.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.wire.primitives import decode_with_replacement

_SEQUENCE: Final = 0x30
_OBJECT_IDENTIFIER: Final = 0x06
_EXPLICIT_VERSION: Final = 0xA0
_MULTIPLE_BYTES: Final = 0x1F
"""The bits of a tag that is longer than a byte; a certificate has none."""
_LONG_LENGTH: Final = 0x80
_SUBJECT_INDEX: Final = 4
"""The fields before the subject: serial number, algorithm, issuer and validity."""
_KEYWORDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "2.5.4.3": "CN",
        "2.5.4.6": "C",
        "2.5.4.7": "L",
        "2.5.4.8": "ST",
        "2.5.4.9": "STREET",
        "2.5.4.10": "O",
        "2.5.4.11": "OU",
        "0.9.2342.19200300.100.1.1": "UID",
        "0.9.2342.19200300.100.1.25": "DC",
    }
)
_STRING_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, UniversalString, BMPString."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')
_BLANKS: Final = frozenset(" \r")


class DerError(ValueError):
    """Bytes that are not in the form of a certificate."""


class _Element(NamedTuple):
    """One element: its tag, its content, and all its bytes."""

    tag: int
    content: bytes
    encoded: bytes


def subject_of_certificate(certificate: bytes) -> str:
    """Return the subject of a certificate in DER; raises DerError."""
    (signed, *_) = _elements(_content(certificate, _SEQUENCE))
    fields = list(_elements(_content(signed.encoded, _SEQUENCE)))
    if fields and fields[0].tag == _EXPLICIT_VERSION:
        del fields[0]
    if len(fields) <= _SUBJECT_INDEX:
        raise DerError("the certificate has no subject")
    return name_text(fields[_SUBJECT_INDEX].encoded)


def name_text(name: bytes) -> str:
    """Return the text of a name in DER, its last part first; raises DerError."""
    parts = [
        "+".join(_attribute_text(attribute.content) for attribute in _elements(part.content))
        for part in _elements(_content(name, _SEQUENCE))
    ]
    return ",".join(reversed(parts))


def _attribute_text(attribute: bytes) -> str:
    elements = list(_elements(attribute))
    if len(elements) != 2 or elements[0].tag != _OBJECT_IDENTIFIER:
        raise DerError("an attribute is not an object identifier and a value")
    identifier = _dotted(elements[0].content)
    value = elements[1]
    keyword = _KEYWORDS.get(identifier)
    if keyword is None or value.tag not in _STRING_TAGS:
        return f"{keyword or identifier}=#{value.encoded.hex()}"
    return f"{keyword}={_escaped(decode_with_replacement(value.content))}"


def _escaped(value: str) -> str:
    """Return a value with a backslash before special characters, and before blanks at its ends."""
    leading = len(value) - len(value.lstrip("".join(_BLANKS)))
    trailing = len(value.rstrip("".join(_BLANKS)))
    return "".join(
        _escaped_character(character, is_at_end=not leading <= index < trailing)
        for index, character in enumerate(value)
    )


def _escaped_character(character: str, *, is_at_end: bool) -> str:
    if character == "\0":
        return "\\00"
    if is_at_end or character in _ESCAPED:
        return f"\\{character}"
    return character


def _dotted(identifier: bytes) -> str:
    """Return an object identifier as numbers with dots between them."""
    numbers: list[int] = []
    number = 0
    for byte in identifier:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    if not numbers or identifier[-1] & 0x80:
        raise DerError("an object identifier is not whole")
    # The first two are in one number, and only 2 may have a second one above 39.
    root = min(numbers[0] // 40, 2)
    return ".".join(map(str, (root, numbers[0] - 40 * root, *numbers[1:])))


def _content(encoded: bytes, tag: int) -> bytes:
    """Return the content of the only element, which must have `tag`."""
    elements = list(_elements(encoded))
    if len(elements) != 1 or elements[0].tag != tag:
        raise DerError(f"not an element with tag {tag}")
    return elements[0].content


def _elements(data: bytes) -> Iterator[_Element]:
    """Yield the elements that follow each other in `data`."""
    start = 0
    while start < len(data):
        element = _element(data, start)
        yield element
        start += len(element.encoded)


def _element(data: bytes, start: int) -> _Element:
    head = data[start : start + 2]
    if len(head) < 2 or head[0] & _MULTIPLE_BYTES == _MULTIPLE_BYTES:
        raise DerError("an element has no tag and length that are known")
    size = head[1]
    body = start + 2
    if size & _LONG_LENGTH:
        size_bytes = size & ~_LONG_LENGTH
        size = int.from_bytes(data[body : body + size_bytes], "big")
        body += size_bytes
    end = body + size
    if end > len(data):
        raise DerError("an element ends behind its surroundings")
    return _Element(head[0], data[body:end], data[start:end])
