"""Secrets that notice a comparison whose time tells where two of them differ."""

from typing import NoReturn


class ComparedAsAWhole(bytes):
    """Bytes that are compared by `compare_digest` alone, which takes as long for any others."""

    def __eq__(self, other: object) -> NoReturn:
        raise AssertionError(f"compared with {other!r} up to the first difference")

    __ne__ = __eq__
    __hash__ = bytes.__hash__


class PasswordComparedAsAWhole(str):
    """A password whose bytes are compared in such a way."""

    __slots__ = ()

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        return ComparedAsAWhole(super().encode(encoding, errors))
