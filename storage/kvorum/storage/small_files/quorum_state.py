"""The quorum-state file: a replica's epoch and vote, kept across restarts.

One line of JSON as Kafka writes it. Version 0 belongs to kraft.version 0 and names the voters,
version 1 to kraft.version 1 and names the voted directory instead. Elections depend on the
file, so its content is never guessed: an unreadable file or an unknown version stops the node.

After Kafka's keys comes one that Kafka ignores: the checksum of the line without it. A flipped bit
may turn a digit into another one; a node that believed such an epoch or vote could vote twice. The
key is missing where Kafka wrote the file; then nothing is checked.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from kvorum.storage.errors import CorruptFileError, UnknownVersionError, shortened
from kvorum.storage.files import FileSystem, read_if_there, replace_durably
from kvorum.wire.checksums import crc32c
from kvorum.wire.java_text import java_lines
from kvorum.wire.uuid_text import ZERO_UUID, uuid_from_text, uuid_to_text

QUORUM_STATE_FILE = "quorum-state"
VERSION_MAX = 1
_NO_NODE = -1
_INT32_LIMIT = 2**31
CHECKSUM_KEY = "kvorumChecksum"
_CHECKSUM = re.compile(r',"kvorumChecksum":"([0-9a-f]{8})"\}\Z')
_KEYS = (
    frozenset({"clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset"})
    | {"currentVoters", "data_version", CHECKSUM_KEY},
    frozenset({"leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"})
    | {CHECKSUM_KEY},
)
"""The keys of each version."""
_ADVICE = (
    "Restore the file. Without it the node may vote twice in one epoch: do not just remove it, "
    "unless the whole directory is emptied and the node joins the quorum anew"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumState:
    """A leader epoch, and the leader and the candidate voted for in it, where there is one.

    `voted_directory_id` is known only to version 1, `voters` (None: the file has null) only to
    version 0; each is ignored when the other version is written.
    """

    leader_epoch: int
    leader_id: int | None = None
    voted_id: int | None = None
    voted_directory_id: bytes | None = None
    voters: tuple[int, ...] | None = ()


class QuorumStateFile:
    """The quorum-state file of one log directory."""

    def __init__(self, directory: Path, files: FileSystem) -> None:
        self.path = directory / QUORUM_STATE_FILE
        self._files = files

    def read(self) -> QuorumState | None:
        """Return the stored state, or None without a file.

        Raises CorruptFileError for anything but a whole state, and UnknownVersionError.
        """
        data = read_if_there(self._files, self.path)
        return None if data is None else decode_quorum_state(data, self.path)

    def write(self, state: QuorumState, *, version: int) -> None:
        """Replace the file durably by `state` in the format of `version` (0 or 1).

        Returns only once it would survive a power cut: before that, no vote may be answered.
        """
        replace_durably(self._files, self.path, with_checksum(encode_quorum_state(state, version)))


def with_checksum(data: bytes) -> bytes:
    """Return the line of a state with its checksum added as the last key."""
    return data[:-1] + b',"%s":"%08x"}' % (CHECKSUM_KEY.encode(), crc32c(data))


def encode_quorum_state(state: QuorumState, version: int) -> bytes:
    """Return Kafka's line for a state in the format of `version`."""
    leader_id = _NO_NODE if state.leader_id is None else state.leader_id
    voted_id = _NO_NODE if state.voted_id is None else state.voted_id
    fields: dict[str, object]
    if version == 0:
        voters = state.voters
        fields = {
            "clusterId": "",
            "leaderId": leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": voted_id,
            "appliedOffset": 0,
            "currentVoters": (
                None if voters is None else [{"voterId": voter_id} for voter_id in voters]
            ),
            "data_version": 0,
        }
    elif version == VERSION_MAX:
        fields = {
            "leaderId": leader_id,
            "leaderEpoch": state.leader_epoch,
            "votedId": voted_id,
            "votedDirectoryId": uuid_to_text(state.voted_directory_id or ZERO_UUID),
            "data_version": 1,
        }
    else:
        raise UnknownVersionError(f"quorum-state has no version {version}")
    return json.dumps(fields, separators=(",", ":")).encode()


def decode_quorum_state(data: bytes, file: Path) -> QuorumState:
    """Return the state in `data`, the content of `file`."""
    try:
        line = first_line(data)
    except UnicodeDecodeError as error:
        raise _corrupt("not UTF-8", file) from error
    fields = _json_object(line, file)
    version = _whole_number(fields, "data_version", file)
    if not 0 <= version <= VERSION_MAX:
        raise UnknownVersionError(
            f"data_version ({version}) is not within the min (0) and max ({VERSION_MAX}) "
            "supported version",
            file=file,
            advice="The file is from a newer release: run that one",
        )
    _demand_intact(line, fields, version, file)
    leader_id = _whole_number(fields, "leaderId", file)
    voted_id = _whole_number(fields, "votedId", file)
    directory_id = _directory_id(fields, file) if version > 0 else ZERO_UUID
    return QuorumState(
        leader_epoch=_whole_number(fields, "leaderEpoch", file),
        leader_id=None if leader_id == _NO_NODE else leader_id,
        voted_id=None if voted_id == _NO_NODE else voted_id,
        voted_directory_id=None if directory_id == ZERO_UUID else directory_id,
        voters=_voters(fields, file) if version == 0 else (),
    )


def first_line(data: bytes) -> str:
    """Return the line of a file that counts: Kafka reads none after it.

    Raises UnicodeDecodeError.
    """
    return next(iter(java_lines(data)), "")


def _demand_intact(line: str, fields: dict[str, object], version: int, file: Path) -> None:
    """Raise CorruptFileError where the checksum is wrong or a key is unknown.

    A damaged key of the checksum is such an unknown key.
    """
    unknown = sorted(fields.keys() - _KEYS[version])
    if unknown:
        raise _corrupt(f"version {version} has no {shortened(unknown[0])}", file)
    if CHECKSUM_KEY not in fields:
        return
    found = _CHECKSUM.search(line)
    if found is None or crc32c(f"{line[: found.start()]}}}".encode()) != int(found.group(1), 16):
        raise _corrupt("its checksum does not match", file)


def _json_object(line: str, file: Path) -> dict[str, object]:
    try:
        value = cast("object", json.loads(line))
    except (ValueError, RecursionError) as error:
        raise _corrupt(f"not JSON: {error}", file) from error
    if not isinstance(value, dict):
        raise _corrupt("not a JSON object", file)
    return cast("dict[str, object]", value)


def _whole_number(fields: dict[str, object], name: str, file: Path) -> int:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise _corrupt(f"{name} is missing or no whole number", file)
    if not -_INT32_LIMIT <= value < _INT32_LIMIT:
        raise _corrupt(f"{name} is out of range", file)
    return value


def _directory_id(fields: dict[str, object], file: Path) -> bytes:
    value = fields.get("votedDirectoryId")
    try:
        return uuid_from_text(value if isinstance(value, str) else "")
    except ValueError as error:
        raise _corrupt("votedDirectoryId is missing or no id", file) from error


def _voters(fields: dict[str, object], file: Path) -> tuple[int, ...] | None:
    value = fields.get("currentVoters", False)
    if value is None:
        return None
    if not isinstance(value, list):
        raise _corrupt("currentVoters is missing or no list", file)
    voters: list[int] = []
    for entry in cast("list[object]", value):
        if not isinstance(entry, dict):
            raise _corrupt("currentVoters holds something else than a voter", file)
        voters.append(_whole_number(cast("dict[str, object]", entry), "voterId", file))
    return tuple(voters)


def _corrupt(problem: str, file: Path) -> CorruptFileError:
    return CorruptFileError(problem, file=file, advice=_ADVICE)
