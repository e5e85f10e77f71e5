"""``recover``: one surviving controller made the only voter, offline (see docs/recovery.md)."""

from __future__ import annotations

import argparse
import getpass
import socket
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from kvorum.cli.quorum_tool.recover_text import afterwards_lines, done_line, plan_lines
from kvorum.inspection.recovery.choice import check_belong_together
from kvorum.inspection.recovery.errors import RecoveryRefusedError
from kvorum.inspection.recovery.plan import RecoveryOptions, plan_recovery
from kvorum.inspection.recovery.record import Operator
from kvorum.inspection.recovery.survivor import Survivor, read_survivor
from kvorum.inspection.recovery.writing import (
    complete,
    done_recovery,
    interrupted_recovery,
    recover,
)
from kvorum.metadata.config_definitions import QuorumVoterEntry
from kvorum.node.config import NodeConfig, load_properties
from kvorum.node.version import VERSION
from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.voter_set import NO_VOTERS, Voter, VoterSet
from kvorum.storage.errors import DirectoryLockedError
from kvorum.storage.files import FileSystem, RealFileSystem
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.directory_lock import lock_directory

_OK = 0
_DRY_RUN = "Dry run: nothing was written. --execute does it."


class _Named(NamedTuple):
    """The directories that the command line names, and what configurations add to them."""

    directories: tuple[Path, ...]
    static_voters: VoterSet = NO_VOTERS
    listener_name: str | None = None


def run_recover(arguments: argparse.Namespace, words: Sequence[str]) -> int:
    """Print the forecast, and with --execute recover; return the exit code.

    `words` are the whole command line, for the record. Raises RecoveryRefusedError, ConfigError or
    StorageError.
    """
    files = RealFileSystem()
    named = _named(arguments)
    with ExitStack() as locks:
        for directory in named.directories:
            _lock(directory, files, locks)
        survivors = [
            read_survivor(directory, files, static_voters=named.static_voters)
            for directory in named.directories
        ]
        check_belong_together(survivors)
        if _is_settled(survivors, files, is_executing=arguments.execute):
            return _OK
        _recover(survivors, _options(arguments, named), arguments, words, files)
    return _OK


def _recover(
    survivors: Sequence[Survivor],
    options: RecoveryOptions,
    arguments: argparse.Namespace,
    words: Sequence[str],
    files: FileSystem,
) -> None:
    plan = plan_recovery(survivors, options)
    _print(plan_lines(plan))
    if not arguments.execute:
        _print(afterwards_lines(plan.chosen, plan.voter))
        print(_DRY_RUN)
        return
    now = time.time()
    record = recover(plan, _operator(words, now), files, now_ms=int(now * 1000))
    print(f"Written. The record is {record.path}")
    _print(afterwards_lines(plan.chosen, plan.voter))


def _is_settled(survivors: Iterable[Survivor], files: FileSystem, *, is_executing: bool) -> bool:
    """Return whether an earlier recovery is done, or was interrupted and has been completed."""
    for survivor in survivors:
        record = done_recovery(survivor, files)
        if record is not None:
            print(done_line(survivor, record))
            return True
        record = interrupted_recovery(survivor, files)
        if record is None:
            continue
        if is_executing:
            complete(survivor, record, files)
            print(
                f"Completed the interrupted recovery of {record.time}. The record is {record.path}"
            )
            voter = survivor.voters.voters[0]
            _print(afterwards_lines(survivor, voter))
        else:
            print(
                f"The recovery of {record.time} was interrupted after node {survivor.key.id} had "
                f"become the only voter ({record.path}): --execute completes it."
            )
        return True
    return False


def _print(lines: Iterator[str]) -> None:
    for line in lines:
        print(line)


def _lock(directory: Path, files: FileSystem, locks: ExitStack) -> None:
    if not directory.is_dir():
        raise RecoveryRefusedError(f"{directory} is not a directory")
    try:
        held = lock_directory(directory, files)
    except DirectoryLockedError as error:
        raise RecoveryRefusedError(
            f"{directory} is in use: a node holds its .lock. Stop that node first"
        ) from error
    locks.callback(held.release)


def _named(arguments: argparse.Namespace) -> _Named:
    if arguments.directories is not None:
        return _Named(_distinct(Path(text) for text in arguments.directories))
    configs = [
        NodeConfig.from_properties(load_properties(path), must_be_servable=False)
        for path in arguments.config
    ]
    name = next((each for one in configs for each in one.listeners.controller_names), None)
    voters: dict[int, Voter] = {}
    for config in configs:
        for entry in config.quorum.voters:
            endpoint = Endpoint(name or "CONTROLLER", entry.host, entry.port)
            voters[entry.node_id] = Voter(ReplicaKey(entry.node_id), (endpoint,))
    return _Named(
        _distinct(Path(one.metadata_log.directory) for one in configs),
        VoterSet.of(voters.values()),
        name,
    )


def _distinct(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return metadata log directories; one of a partition stands for its parent."""
    found = (path.parent if path.name == METADATA_LOG_DIRECTORY else path for path in paths)
    return tuple(dict.fromkeys(path.absolute() for path in found))


def _options(arguments: argparse.Namespace, named: _Named) -> RecoveryOptions:
    voter: QuorumVoterEntry | None = arguments.voters
    return RecoveryOptions(
        node_id=None if voter is None else voter.node_id,
        address=None if voter is None else (voter.host, voter.port),
        listener_name=named.listener_name,
        allows_observer=arguments.allow_observer,
        allows_shorter_log=arguments.allow_shorter_log,
    )


def _operator(words: Sequence[str], now: float) -> Operator:
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "unknown"
    return Operator(
        user=user,
        host=socket.gethostname(),
        command=(Path(sys.argv[0]).name, *words),
        version=VERSION,
        time=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )
