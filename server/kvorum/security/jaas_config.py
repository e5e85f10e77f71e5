"""Kafka's JaasConfig: the text of `sasl.jaas.config`, a login module with its options."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

_WORD_START: Final = r"A-Za-z_$\u00a0-\U0010ffff"
_TOKEN: Final = re.compile(
    rf"""
    (?P<blank>[\x00-\x20]+ | /\*.*?(?:\*/|\Z) | //[^\r\n]* | /.?[^\r\n]*)
    | (?P<quoted>(?P<quote>["'])(?P<text>(?:\\(?:.|\Z)|(?!(?P=quote))[^\\\r\n])*)(?P=quote)?)
    | (?P<word>[{_WORD_START}][{_WORD_START}0-9.\-]*)
    | (?P<number>[-.0-9][0-9.]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
"""A token of Java's StreamTokenizer; a comment is blank.

A single slash and the character after it, even if that ends the line, begin a comment.
"""
_ESCAPE: Final = re.compile(r"\\(?:(?P<octal>[0-3]?[0-7]?[0-7])|(?P<other>.?))", re.DOTALL)
_ESCAPED_END: Final = "\uffff"
"""The character of a backslash at the end of a text."""
_ESCAPES: Final[Mapping[str, str]] = MappingProxyType(
    {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
)
_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_END: Final = ";"


class InvalidJaasConfigError(ValueError):
    """A text that is not a login module; the message is Kafka's, without the values of options."""


class LoginModule(NamedTuple):
    """A login module by the name of its class, and its options, which may be secrets."""

    class_name: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        """Return the name alone."""
        return f"LoginModule({self.class_name})"


class _Token(NamedTuple):
    """A token; `text` is None where it is neither a word nor quoted, `sign` where it is."""

    text: str | None
    sign: str | None


def missing_of_server(listener: str, mechanism: str) -> InvalidJaasConfigError:
    """Return Kafka's error for a listener without a login module, with the key that sets one."""
    name = listener.lower()
    return InvalidJaasConfigError(
        f"Could not find a 'KafkaServer' or '{name}.KafkaServer' entry in the JAAS configuration. "
        "System property 'java.security.auth.login.config' is not set: set "
        f"listener.name.{name}.{mechanism.lower()}.sasl.jaas.config"
    )


def parse_jaas_config(text: str) -> LoginModule:
    """Return the one login module of a text; raises InvalidJaasConfigError."""
    tokens = _tokens(text)
    modules = [_module(first, tokens) for first in tokens]
    if not modules:
        raise InvalidJaasConfigError("Login module not specified in JAAS config")
    if len(modules) != 1:
        raise InvalidJaasConfigError(
            f"JAAS config property contains {len(modules)} login modules, should be 1 module"
        )
    return modules[0]


def _module(first: _Token, tokens: Iterator[_Token]) -> LoginModule:
    """Read a module up to its semicolon."""
    flag = next(tokens, None)
    if flag is None:
        raise InvalidJaasConfigError("Login module control flag not specified in JAAS config")
    if flag.text is None:
        raise InvalidJaasConfigError(
            "Login module control flag is not available in the JAAS config"
        )
    if flag.text.lower() not in _FLAGS:
        raise InvalidJaasConfigError(
            f"Invalid login module control flag '{flag.text}' in JAAS config"
        )
    options: dict[str, str] = {}
    for key in tokens:
        if key.sign == _END:
            if not first.text:
                raise InvalidJaasConfigError("Login module without a name in JAAS config")
            return LoginModule(first.text, MappingProxyType(options))
        name = "null" if key.text is None else key.text
        options[name] = _value(name, tokens)
    raise InvalidJaasConfigError("JAAS config entry not terminated by semi-colon")


def _value(name: str, tokens: Iterator[_Token]) -> str:
    equals = next(tokens, None)
    if equals is not None and equals.sign == "=":
        value = next(tokens, None)
        if value is not None and value.text is not None:
            return value.text
    raise InvalidJaasConfigError(f"Value not specified for key '{name}' in JAAS config")


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match["quoted"] is not None:
            yield _Token(_ESCAPE.sub(_unescaped, match["text"]), None)
        elif match["word"] is not None:
            yield _Token(match["word"], None)
        elif match["blank"] is None:
            yield _Token(None, match["number"] or match["other"])


def _unescaped(match: re.Match[str]) -> str:
    if match["octal"] is not None:
        return chr(int(match["octal"], 8))
    return _ESCAPES.get(match["other"], match["other"]) or _ESCAPED_END
