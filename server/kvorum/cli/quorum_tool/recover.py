"""``recover``: one surviving controller made the only voter, offline (see docs/recovery.md).

The report says what was found, what the recovery costs, and what is to be done.
"""

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

from kvorum.inspection.recovery.plan import (
    Forecast,
    Loss,
    RecoveryOptions,
    RecoveryPlan,
    check_belong_together,
    plan_recovery,
)
from kvorum.inspection.recovery.survivor import RecoveryRefusedError, Survivor, read_survivor
from kvorum.inspection.recovery.writing import Operator, complete, lasting_recovery, recover
from kvorum.metadata.address import Address
from kvorum.metadata.config_definitions import QuorumVoterEntry
from kvorum.node.config import NodeConfig, load_properties
from kvorum.node.version import VERSION
from kvorum.raft import Endpoint, ReplicaKey
from kvorum.raft.voter import Voter
from kvorum.raft.voter_set import NO_VOTERS, VoterSet
from kvorum.storage.errors import DirectoryLockedError
from kvorum.storage.files import FileSystem, RealFileSystem
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.storage.small_files.directory_lock import lock_directory
from kvorum.wire.uuid_text import uuid_to_text

_OK = 0
_LABEL_WIDTH = 15


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
        plan = plan_recovery(survivors, _options(arguments, named))
        _print_plan(plan)
        if arguments.execute:
            now = time.time()
            record = recover(plan, _operator(words, now), files, now_ms=int(now * 1000))
            print(f"Written. The record is {record.path}")
        _print_entry("Afterwards", _afterwards_texts(plan.chosen, plan.voter))
        if not arguments.execute:
            print("Dry run: nothing was written. --execute does it.")
    return _OK


def _is_settled(survivors: Iterable[Survivor], files: FileSystem, *, is_executing: bool) -> bool:
    """Return whether an earlier recovery is done, or was interrupted and has been completed."""
    for survivor in survivors:
        record = lasting_recovery(survivor, files)
        if record is None:
            continue
        if record.is_done:
            print(
                f"Node {survivor.key.id} ({survivor.directory}) was recovered at {record.time} and "
                f"is the only voter: there is nothing to do. See {record.path}"
            )
        elif is_executing:
            complete(survivor, record, files)
            print(
                f"Completed the interrupted recovery of {record.time}. The record is {record.path}"
            )
            _print_entry("Afterwards", _afterwards_texts(survivor, survivor.voters.voters[0]))
        else:
            print(
                f"The recovery of {record.time} was interrupted after node {survivor.key.id} had "
                f"become the only voter ({record.path}): --execute completes it."
            )
        return True
    return False


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


def _print_plan(plan: RecoveryPlan) -> None:
    chosen = plan.chosen
    _print_entry("Cluster", [f"{chosen.cluster_id}, kraft.version {chosen.kraft_version}"])
    _print_entry("Survivors", [_survivor_text(one) for one in plan.survivors])
    _print_entry("Recovered from", [f"node {chosen.key.id}, {chosen.directory}"])
    _print_entry("Its voters", _voters_texts(chosen))
    _print_entry("Kept", _kept_texts(plan.forecast))
    _print_entry("Committed", _committed_texts(plan.forecast))
    _print_entry("Lost", _lost_texts(plan.forecast))
    _print_entry("To be written", _written_texts(plan))


def _afterwards_texts(survivor: Survivor, voter: Voter) -> list[str]:
    """Return the steps that the operator has to take after the recovery."""
    node_id = survivor.key.id
    texts = ["never start the lost controllers with their old directories: they would elect again"]
    if survivor.kraft_version == 0:
        texts += [
            f"set controller.quorum.voters={_address_text(voter)} on node {node_id} and on brokers",
            f"start node {node_id}, then the brokers",
            "let voters be added: kafka-features upgrade --feature kraft.version=1",
        ]
    else:
        texts += [
            "name the new controllers in controller.quorum.bootstrap.servers",
            f"start node {node_id}, then the brokers",
        ]
    texts += [
        "format the other controllers, survivors too, with empty directories:",
        f"   kafka-storage format -t {survivor.cluster_id} --no-initial-controllers -c FILE",
        "start them, and add one after the other: kafka-metadata-quorum add-controller",
    ]
    return texts


def _print_entry(label: str, texts: Iterable[str]) -> None:
    head = f"{label}:"
    for text in texts:
        print(f"{head:<{_LABEL_WIDTH}} {text}")
        head = ""


def _survivor_text(one: Survivor) -> str:
    part = "voter" if one.is_voter else "observer"
    stored = "no quorum-state" if one.election is None else f"epoch {one.election.leader_epoch}"
    text = (
        f"node {one.key.id}, {part}, {one.directory}: log from {one.start_offset} to "
        f"{one.end.offset}, last epoch {one.end.epoch}; {stored}"
    )
    if one.torn_tail is not None:
        text += f"; {one.torn_tail.size} bytes of half a batch behind it"
    return text


def _voters_texts(chosen: Survivor) -> Iterator[str]:
    yield _ids_text(chosen.voters)
    if not chosen.recorded or chosen.kraft_version == 0:
        return
    latest = chosen.recorded[-1]
    if latest.end > chosen.committed.end:
        before = [record.voters for record in chosen.recorded[:-1]]
        rest = f"; before it {_ids_text(before[-1])}" if before else ""
        yield (
            f"the record of them at offset {latest.end.offset - 1} may never have been "
            f"committed{rest}"
        )


def _kept_texts(forecast: Forecast) -> Iterator[str]:
    kept = forecast.kept
    yield f"every record of that log: all below offset {kept.offset}"
    yield (
        f"so of the acknowledged records: all of epochs below {kept.epoch}, and those of epoch "
        f"{kept.epoch} below offset {kept.offset}"
    )


def _committed_texts(forecast: Forecast) -> Iterator[str]:
    end, proof = forecast.committed
    yield f"certainly everything below offset {end.offset}: {proof.value}"
    if forecast.unproven_count:
        yield (
            f"offsets {end.offset} to {forecast.kept.offset - 1} may never have been committed; "
            "the recovery commits them"
        )


def _lost_texts(forecast: Forecast) -> Iterator[str]:
    kept, ids = forecast.kept, ", ".join(map(str, forecast.lost_ids))
    above = (
        f"records of epoch {kept.epoch} from offset {kept.offset} on, and of epochs above "
        f"{kept.epoch}"
    )
    match forecast.loss:
        case Loss.NONE:
            yield "nothing that was acknowledged: every majority of the voters has a survivor"
        case Loss.NONE_UNLESS_VOTERS_CHANGED:
            yield (
                "nothing that was acknowledged, unless the voters were changed without any of "
                f"these survivors: then {above}"
            )
        case Loss.POSSIBLE:
            yield f"{above}, if there were any"
            yield (
                f"at most what a majority without these survivors acknowledged, with {ids}; no "
                "surviving file tells whether it did"
            )
        case Loss.CERTAIN:
            yield f"{above}; some of them are known to be committed, up to offset " + str(
                forecast.committed.end.offset - 1
            )
    if forecast.is_leader_of_last_epoch and forecast.loss is not Loss.NONE:
        yield (
            f"of epoch {kept.epoch} nothing, unless a power cut has shortened the log: this node "
            "was its leader"
        )


def _written_texts(plan: RecoveryPlan) -> Iterator[str]:
    chosen = plan.chosen
    if plan.is_dynamic:
        yield (
            f"{chosen.log_directory}: at offset {chosen.end.offset} one batch of epoch "
            f"{plan.epoch} with LEADER_CHANGE, KRAFT_VERSION and KRAFT_VOTERS: "
            f"{_voter_text(plan.voter)}"
        )
        yield f"{chosen.log_directory}/quorum-state: epoch {plan.epoch}, leader {chosen.key.id}"
    else:
        yield (
            f"{chosen.log_directory}/quorum-state: epoch {plan.epoch}, voters "
            f"{_ids_text(plan.voters)}"
        )
    yield f"{chosen.directory}: a record of this recovery, kvorum-quorum-recovery-TIME.json"


def _voter_text(voter: Voter) -> str:
    directory = "" if voter.key.directory_id is None else f":{uuid_to_text(voter.key.directory_id)}"
    return f"{_address_text(voter)}{directory}"


def _address_text(voter: Voter) -> str:
    if not voter.endpoints:
        return f"{voter.key.id}@HOST:PORT"
    endpoint = voter.endpoints[0]
    return f"{voter.key.id}@{Address(endpoint.host, endpoint.port)}"


def _ids_text(voters: VoterSet) -> str:
    return ", ".join(map(str, voters.ids))
