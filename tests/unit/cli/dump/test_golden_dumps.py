"""Our text of every golden file against what kafka-dump-log of the same release printed.

Kafka 4.4.0 prints the name of a transaction's state, where older releases print its number.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.dump_log import decoder_of, dump

from kvorum.internal_topics.states import TRANSACTION_STATES

# Text differs between releases: 4.3.1 is the one to equal.
SETS = ("dynamic-4.3.1", "ladder-4.3.1", "standalone-4.3.1", "legacy-formats")
KINDS = (".decoded.txt", ".print.txt", ".txt")
STATE = re.compile(rb'(?<="transactionStatus":)\d+')


def state_name(number: re.Match[bytes]) -> bytes:
    return b'"%s"' % TRANSACTION_STATES[int(number[0])].encode()


def golden_texts(folder: Path) -> Iterator[tuple[Path, Path, list[str]]]:
    """Yield each stored text with its file and the options that made it."""
    for text in sorted(folder.rglob("dumps/*.txt")):
        ending = next(kind for kind in KINDS if text.name.endswith(kind))
        if text.name.endswith(".shell.txt"):
            continue
        file = text.parent.parent / text.name.removesuffix(ending)
        options = {
            ".decoded.txt": [decoder_of(file)],
            ".print.txt": ["--print-data-log"],
            ".txt": [],
        }
        yield text, file, options[ending]


@pytest.mark.parametrize("name", SETS)
def test_every_file_is_printed_byte_for_byte(
    golden_sets: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suffixes: set[str] = set()
    for text, file, options in golden_texts(golden_sets / name):
        monkeypatch.chdir(file.parent)
        printed = dump(capsys, "--files", file.name, *options)
        assert printed.stdout.encode() == STATE.sub(state_name, text.read_bytes()), text
        assert printed.exit_code == 0
        suffixes.add(file.suffix)
    assert suffixes >= ({".log"} if name == "legacy-formats" else {".log", ".checkpoint"})
