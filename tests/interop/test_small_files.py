"""The small files of data directories, whole and damaged at each byte, read by Kafka and by us."""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Final

import pytest
from tests.interop.damaged_bytes import damaged
from tests.support.kafka.java import Java

from kvorum.storage.errors import StorageError
from kvorum.storage.log.epochs import decode_leader_epochs
from kvorum.storage.small_files.clean_shutdown import broker_epoch_of
from kvorum.storage.small_files.java_properties import load_java_properties
from kvorum.storage.small_files.meta_properties import decode_meta_properties
from kvorum.storage.small_files.offset_checkpoint_file import decode_offsets
from kvorum.storage.small_files.partition_metadata import decode_partition_metadata
from kvorum.storage.small_files.quorum_state import decode_quorum_state
from kvorum.wire.uuid_text import uuid_to_text

REFUSED: Final = "!"
STRICTER: Final = frozenset({"quorum-state", "epochs", "clean shutdown"})
"""The kinds of which ours may refuse what Kafka takes."""
FILE: Final = Path("file")
CHANGES: Final = b'\x00\t\n\r \x0c\x1f\\=:#!0189-+.eEuA"{}[],\x7f\x85\xa0\xc3\xff'
"""The bytes that take the place of others."""
WHOLE: Final[Mapping[str, tuple[bytes, ...]]] = {
    "properties": (
        b"#comment\n!another\nkey=value\n key2 : value2  \nkey3 value\\\n   goes on\n\n=empty\n",
        b"a\\u00e9\\=\\:\\ b=\\u20ac\\t\\q\\\\\\\r\n  # no comment\rc=d\\",
    ),
    "meta.properties": (
        (
            b"#\n#Mon Nov 30\nnode.id=1\ndirectory.id=mGgc5yJ8QJCn1yfWMiLwVA\nversion=1\n"
            b"cluster.id=5L6g3nShT-eMCtK--X86sw\n"
        ),
        b"broker.id=7\nversion=0\ncluster.id=c\n",
    ),
    "offsets": (
        b"0\n2\norders 0 12\norders 10 9223372036854775807\n",
        b"0\n1\nA.b-c_d 2147483647 -1\n",
        b"0\n0\n",
    ),
    "epochs": (b"0\n2\n0 0\n7 123\n", b"0\n0\n"),
    "partition.metadata": (b"version: 0\ntopic_id: mGgc5yJ8QJCn1yfWMiLwVA",),
    "quorum-state": (
        (
            b'{"leaderId":1,"leaderEpoch":7,"votedId":-1,'
            b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}'
        ),
        (
            b'{"leaderId":-1,"leaderEpoch":7,"votedId":2,'
            b'"votedDirectoryId":"mGgc5yJ8QJCn1yfWMiLwVA","data_version":1}'
        ),
        (
            b'{"clusterId":"","leaderId":-1,"leaderEpoch":3,"votedId":3,"appliedOffset":0,'
            b'"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
        ),
    ),
    "clean shutdown": (b'{"version":0,"brokerEpoch":123}', b""),
}


def _properties(content: bytes) -> str:
    pairs = load_java_properties(content).items()
    return " ".join(sorted(f"{encoded(key)}={encoded(value)}" for key, value in pairs))


def _meta_properties(content: bytes) -> str:
    return str(decode_meta_properties(content))


def _offsets(content: bytes) -> str:
    offsets = decode_offsets(content, FILE, advice="")
    lines = (f"{encoded(topic)} {number} {at}" for (topic, number), at in offsets.items())
    return "\n".join(sorted(lines))


def _epochs(content: bytes) -> str:
    entries = decode_leader_epochs(content, FILE)
    return "\n".join(f"{entry.epoch} {entry.start_offset}" for entry in entries)


def _partition_metadata(content: bytes) -> str:
    return uuid_to_text(decode_partition_metadata(content, FILE))


def _quorum_state(content: bytes) -> str:
    state = decode_quorum_state(content, FILE)
    voted = "nobody"
    if state.voted_id is not None:
        directory = state.voted_directory_id
        voted = f"{state.voted_id} {'anywhere' if directory is None else uuid_to_text(directory)}"
    leader_id = -1 if state.leader_id is None else state.leader_id
    return f"{state.leader_epoch} {leader_id} {voted}"


def _clean_shutdown(content: bytes) -> str:
    epoch = broker_epoch_of(content)
    return "OptionalLong.empty" if epoch is None else f"OptionalLong[{epoch}]"


READERS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "properties": _properties,
    "meta.properties": _meta_properties,
    "offsets": _offsets,
    "epochs": _epochs,
    "partition.metadata": _partition_metadata,
    "quorum-state": _quorum_state,
    "clean shutdown": _clean_shutdown,
}


def encoded(text: str) -> str:
    return text.encode("utf-16-be", "surrogatepass").hex()


def is_alike(kind: str, ours: str, theirs: str) -> bool:
    """Return whether ours is Kafka's answer, or refuses what Kafka guesses at.

    Ours refuses a state of a quorum with something after it or with an unknown key, and epochs that
    do not increase, of which Kafka drops some later; without a sound mark, an end is unclean.
    """
    if kind in STRICTER and ours in {REFUSED, encoded("OptionalLong.empty")}:
        return True
    return ours == theirs


def answer_of_ours(kind: str, content: bytes) -> str:
    try:
        return encoded(READERS[kind](content))
    except StorageError:
        return REFUSED


@pytest.mark.parametrize("seed", range(3))
def test_small_files_are_read_and_refused_as_by_kafka(
    java: Java, tmp_path: Path, seed: int
) -> None:
    random = Random(seed)
    given = [
        (kind, content)
        for kind, whole in WHOLE.items()
        for one in whole
        for content in damaged(one, CHANGES, random)
    ]
    asked = [f"{kind.replace(' ', '-')} {content.hex()}" for kind, content in given]
    answers = java.answers("SmallFiles", str(tmp_path), asked=asked)
    differing = [
        (kind, content, theirs, ours)
        for (kind, content), theirs in zip(given, answers, strict=True)
        if not is_alike(kind, ours := answer_of_ours(kind, content), theirs)
    ]
    assert differing == []
