"""Base64 as Java's basic decoders read it."""

import base64
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.wire.java_base64 import decode_java_base64, decode_java_base64_url


@given(st.binary())
def test_bytes_are_read_with_padding_and_without(content: bytes) -> None:
    text = base64.b64encode(content).decode()
    url_text = base64.urlsafe_b64encode(content).decode()
    assert decode_java_base64(text) == decode_java_base64(text.rstrip("=")) == content
    assert decode_java_base64_url(url_text) == decode_java_base64_url(url_text.rstrip("="))


@pytest.mark.parametrize(
    ("decode", "text", "problem"),
    [
        (decode_java_base64, "A", "Input byte[] should at least have 2 bytes for base64 bytes"),
        (decode_java_base64, "A-", "Illegal base64 character 2d"),
        (decode_java_base64_url, "A+", "Illegal base64 character 2b"),
        (decode_java_base64, "A\u00e9", "Illegal base64 character -17"),
        (decode_java_base64, "A\u20ac", "Illegal base64 character 3f"),
        (decode_java_base64, "AB=", "Input byte array has wrong 4-byte ending unit"),
        (decode_java_base64, "ABCD=", "Input byte array has wrong 4-byte ending unit"),
        (decode_java_base64, "ABCDE", "Last unit does not have enough valid bits"),
        (decode_java_base64, "ABCDE=", "Last unit does not have enough valid bits"),
        (decode_java_base64, "AB==C", "Input byte array has incorrect ending byte at 4"),
        (decode_java_base64, "ABC==", "Input byte array has incorrect ending byte at 4"),
    ],
)
def test_an_undecodable_text_is_complained_of_in_javas_words(
    decode: Callable[[str], bytes], text: str, problem: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        decode(text)
