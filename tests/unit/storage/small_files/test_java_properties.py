"""The properties format, against what java.util.Properties is documented to do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvorum.storage.errors import PropertiesFormatError
from kvorum.storage.small_files.java_properties import load_java_properties, store_java_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("key=value", {"key": "value"}),
        ("  key = value ", {"key": "value "}),
        ("key:value", {"key": "value"}),
        ("key value", {"key": "value"}),
        ("key\t \f=  value", {"key": "value"}),
        ("key = = value", {"key": "= value"}),
        ("key", {"key": ""}),
        ("=value", {"": "value"}),
        ("# a=b\n! c=d\n  # e=f\ng=h", {"g": "h"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3\n\n \t\nd=4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a = one, \\\n    two, \\\r\n  three", {"a": "one, two, three"}),
        ("a=one\\\n# not a comment", {"a": "one# not a comment"}),
        ("a=one\\\\\nb=two", {"a": "one\\", "b": "two"}),
        ("a=one\\\n\nb=two", {"a": "one", "b": "two"}),
        ("a=end\\", {"a": "end"}),
        ("# comment \\\na=b", {"a": "b"}),
        ("a\\ b\\:c\\=d = e", {"a b:c=d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u0041\\u00e9\\ud83d\\ude00", {"a": "A\u00e9\U0001f600"}),
        ("key\\\n  more = value", {"keymore": "value"}),
        ("\\\n\\\n# comment after nothing\na=b", {"a": "b"}),
    ],
)
def test_loading(text: str, expected: dict[str, str]) -> None:
    assert load_java_properties(text) == expected


def test_bytes_are_latin_1() -> None:
    assert load_java_properties(b"a=\xe9\xc3\xa9") == {"a": "\u00e9\u00c3\u00a9"}


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12G4", "a=\\u"])
def test_a_malformed_escape_is_refused(text: str) -> None:
    with pytest.raises(PropertiesFormatError, match="Malformed"):
        load_java_properties(text)


def test_storing_writes_comments_and_escapes() -> None:
    text = store_java_properties([("a b", " x y"), ("c:=#!", "\t\u00e9")], comments=["", "now"])
    assert text == "#\n#now\na\\ b=\\ x y\nc\\:\\=\\#\\!=\\t\\u00E9\n"


@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_what_is_stored_is_loaded_again(properties: dict[str, str]) -> None:
    text = store_java_properties(properties.items(), comments=["comment"])
    assert load_java_properties(text.encode("ascii")) == properties
