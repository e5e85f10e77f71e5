"""The users of certificates: random names and random mapping rules, also by Kafka's own classes."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Final

from tests.support.kafka.java import Java

from kvorum.security.distinguished_name import name_text
from kvorum.security.ssl_principal_mapper import (
    InvalidMappingRuleError,
    NoMappedNameError,
    SslPrincipalMapper,
)

OWN_KEYWORDS: Final = (
    "550403", "550406", "550407", "550408", "550409", "55040a", "55040b",
    "0992268993f22c640101", "0992268993f22c640119",
)  # fmt: skip
OTHER_ATTRIBUTES: Final = (
    "550404", "550405", "55040c", "55042a", "550461", "2a864886f70d010901",
    "2b0601040182373c020103", "883703",
)  # fmt: skip
IDENTIFIERS: Final = tuple(map(bytes.fromhex, OWN_KEYWORDS + OTHER_ATTRIBUTES))
STRING_TAGS: Final = (0x0C, 0x13, 0x14, 0x16, 0x1B)
OTHER_TAGS: Final = (0x02, 0x04, 0x12, 0x1A)
CHARACTERS: Final = 'abZ09 ,+"\\<>;=#/$-.\r\n\0é中😀'
NAMES: Final = 3_000
MAPPINGS: Final = 6_000
PATTERNS: Final = (
    "^CN=(.*?),.*$", "^CN=(.*?),OU=(.*?),.*$", "CN=(.*?)", ".*", "(.*)",
    "^.*[Cc][Nn]=([a-z0-9.]*).*$", "^cn=(.*?),.*$", "KAFKA", "(?i:^cn=(.*?),.*$)",
    r"^CN=(\w+),?.*$", r"CN=a\/b.*", "(CN)=(a)(.*)", "((((((((((a))))))))))?.*", "", "[^,]*,.*",
    r"O=(.*),C=\D*",
)  # fmt: skip
REPLACEMENTS: Final = (
    "$1", "$0", "$2", "$1@$2@$3", "$12", "$3@$4", r"\$1", r"a\/b", "", "x", "$", "$a", "$01",
    "$10$11", r"\\$1", "${n}", "$1$", r"$1\,", "$00",
)  # fmt: skip
ENDS: Final = ("/", "/L", "/U", "/X", "", "/ L", "/LU")
SEPARATORS: Final = (",", " , ", ",,", ", ", " ")


def element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    size_bytes = (size.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size_bytes)) + size.to_bytes(size_bytes, "big") + content


def a_value(random: Random) -> bytes:
    text = "".join(random.choices(CHARACTERS, k=random.randrange(0, 8)))
    if random.random() < 0.1:
        return element(random.choice(OTHER_TAGS), text.encode())
    if random.random() < 0.1:
        return element(0x1E, text.encode("utf-16-be", "replace"))
    if random.random() < 0.05:
        return element(0x0C, random.randbytes(4))
    return element(random.choice(STRING_TAGS), text.encode() * random.choice((1, 1, 1, 40)))


def a_name(random: Random) -> bytes:
    parts = b""
    for _ in range(random.randrange(0, 5)):
        attributes = b""
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            identifier = element(6, random.choice(IDENTIFIERS))
            attributes += element(0x30, identifier + a_value(random))
        parts += element(0x31, attributes)
    return element(0x30, parts)


def a_rule(random: Random) -> str:
    if random.random() < 0.2:
        return random.choice(("DEFAULT", " DEFAULT ", "DEFAULTS", "default", "RULE:", "FOO"))
    pattern = random.choice(PATTERNS)
    replacement = random.choice(REPLACEMENTS)
    return f"RULE:{pattern}/{replacement}{random.choice(ENDS)}"


def a_mapping(random: Random) -> tuple[str, str]:
    rules = random.choice(SEPARATORS).join(a_rule(random) for _ in range(random.randrange(0, 4)))
    name = random.choice(
        (
            "CN=kafka-server1,OU=KAFKA,O=Acme,L=X,C=DE", "CN=a", "CN=a/b,O=x", "", "CN=\\ É ,O=ß",
            "O=KAFKA,CN=b.c", "KAFKA",
        )
    )  # fmt: skip
    return rules, name


def ask(java: Java, what: str, questions: Iterable[Sequence[bytes]]) -> list[str]:
    lines = [" ".join((what, *(part.hex() for part in parts))) for parts in questions]
    answers = java.answers("SslPrincipals", asked=lines)
    return [bytes.fromhex(answer).decode() for answer in answers]


def mapped(rules: str, name: str) -> str:
    """Return the answer in the judge's form."""
    try:
        return f"={SslPrincipalMapper(rules).name_of(name)}"
    except (InvalidMappingRuleError, NoMappedNameError) as error:
        return f"!{error}"


def test_random_names_are_written_as_java_writes_them(java: Java) -> None:
    random = Random(11)
    names = [a_name(random) for _ in range(NAMES)]
    theirs = ask(java, "name", ([name] for name in names))
    differing = [
        (name.hex(), answer, own)
        for name, answer in zip(names, theirs, strict=True)
        if (own := f"={name_text(name)}") != answer
    ]
    assert differing == []


def test_random_rules_give_kafkas_users_and_refusals(java: Java) -> None:
    random = Random(12)
    mappings = [a_mapping(random) for _ in range(MAPPINGS)]
    theirs = ask(java, "map", ([part.encode() for part in mapping] for mapping in mappings))
    differing = [
        (*mapping, answer, own)
        for mapping, answer in zip(mappings, theirs, strict=True)
        if (own := mapped(*mapping)) != answer and not _both_fail(answer, own)
    ]
    assert differing == []


def _both_fail(answer: str, own: str) -> bool:
    """Return whether no name is found by both; Java says how, and a client sees neither text."""
    return own.startswith("!Failed to map name") and answer.startswith(
        ("!No rules apply", "!No group", "!Illegal group reference", "!named capturing")
    )
