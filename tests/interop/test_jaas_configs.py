"""Texts of `sasl.jaas.config`, whole and damaged, read by Kafka and by us."""

from collections.abc import Iterator
from random import Random
from typing import Final

import pytest
from tests.support.kafka.java import Java

from kvorum.security.jaas_config import InvalidJaasConfigError, parse_jaas_config

REFUSED: Final = "!"
WITHOUT_REASON: Final = f"{REFUSED}{b'null'.hex()}"
"""The answer of Kafka for a login module without a name."""
PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
PIECES: Final = (
    *("required", "Optional", "a.b.C", "key", "key=value", 'k="v";', "_x", "-1.5", "7"),
    *("=", ";", " ", "\n", "\t", "\x1f", "\x00", "/", "//", "/*", "*/", "#", "@", "$", "{"),
    *('"', "'", '"text"', "'it''s'", "\\", '\\"', "\\101", "\\8", "\\n", "\\477"),
    *("\u00e9", "\u20ac", "\U0001f600"),
)
"""Pieces of texts, each of which Java's tokenizer may read in another way."""
WHOLE: Final = (
    f'{PLAIN} required username="alice" password="of alice";',
    f"{PLAIN} required user_alice='of \\'alice\\'' user_bob=\"\\101\\t\" ; // and no more",
    f"{PLAIN} /* one\nof\nmany */ sufficient\n  a-b=c.d;",
    f"{PLAIN} required; {PLAIN} required;",
)


def damaged(text: str, random: Random) -> Iterator[str]:
    """Yield a text whole, and cut, shorter by a character, longer and changed at each place."""
    yield text
    for place in range(len(text)):
        piece = random.choice(PIECES)
        yield text[:place]
        yield text[:place] + text[place + 1 :]
        yield text[:place] + piece + text[place:]
        yield text[:place] + piece + text[place + 1 :]


def made_up(random: Random) -> str:
    """Return a text of some pieces, most of which begin as a login module does."""
    start = random.choice(("a.B required ", "a.B required ", ""))
    return start + "".join(random.choices(PIECES, k=random.randrange(1, 12)))


def answer_of_ours(text: str) -> str:
    try:
        module = parse_jaas_config(text)
    except InvalidJaasConfigError as error:
        return f"{REFUSED}{str(error).encode().hex()}"
    options = [word for option in sorted(module.options.items()) for word in option]
    return " ".join(word.encode().hex() for word in (module.class_name, *options))


@pytest.mark.parametrize("seed", range(3))
def test_texts_are_read_and_refused_as_by_kafka(java: Java, seed: int) -> None:
    random = Random(seed)
    texts = [part for text in WHOLE for part in damaged(text, random)]
    texts += [made_up(random) for _ in range(2_000)]
    answers = java.answers("JaasConfigs", asked=[text.encode().hex() for text in texts])
    differing = [
        (text, theirs, ours)
        for text, theirs in zip(texts, answers, strict=True)
        if not _is_alike(ours := answer_of_ours(text), theirs)
    ]
    assert differing == []


def _is_alike(ours: str, theirs: str) -> bool:
    return ours.startswith(REFUSED) if theirs == WITHOUT_REASON else ours == theirs
