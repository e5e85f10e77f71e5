"""Bytes that are not UTF-8, and the text that Java reads from them."""

from __future__ import annotations

# What Java makes of them: tests/interop/test_utf8_replacement.py asks Kafka's own reader.
READ_BY_JAVA = {
    b"\xff": "\ufffd",
    b"a\xffb": "a\ufffdb",
    b"\xc3\x28": "\ufffd(",
    b"\xc0\x80": "\ufffd\ufffd",
    b"\xe1\x80": "\ufffd",
    b"\xe0\x80\x80": "\ufffd\ufffd\ufffd",
    b"\xf1\x80\x80a": "\ufffda",
    b"\xf4\x90\x80\x80": "\ufffd\ufffd\ufffd\ufffd",
    b"\xed\xa0\x80": "\ufffd",
    b"\xed\xa0": "\ufffd",
    b"\xed": "\ufffd",
    b"\xed\xa0a": "\ufffda",
    b"\xed\xed\xbf\xbf\xbf": "\ufffd\ufffd\ufffd",
    b"\xe1\x80\xed\xa0\x80\xc3\xa9": "\ufffd\ufffd\u00e9",
}
