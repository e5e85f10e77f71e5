"""Put the bugs in, one at a time, and see what catches them: ``python -m tests.model.mutation``.

    --only WORD ...       the bugs with one of these words in their ids, functions or modules
    --new                 only bugs that the ledger knows nothing of, or other edits
    --search              look for a test that catches a bug where the ledger names none
    --worlds N            only note which of N worlds of brokers is the first to show a bug
    --leave-ledger        write nothing into the ledger
    --redigest OLD=NEW …  run nothing: keep results after names in the edits were replaced

Runs in a copy of the project. The ledger is written after each bug, unless it is to be left.

A function that moves needs nothing. After a rename: replace the name as a whole word in bugs_*.py,
and `--redigest` with the same names. It keeps a bug's result only where these names are all that
differs from the edits which the result was measured with, and where the edits apply. It runs no
test. All other results stay out of date, are listed, and have to be measured: `--new --search`.
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from tests.model.mutation.catalog import MUTANTS
from tests.model.mutation.ledger import Entry, read_ledger, renamed_entries, write_ledger
from tests.model.mutation.mutant import Kind, Mutant, Sources
from tests.model.mutation.scratch import NoVerdictError, Scratch, Verdict

_RAFT = (
    *("tests/unit/raft", "tests/model/scenarios/test_scenarios.py"),
    *("tests/model/scenarios/test_random_runs.py", "tests/node/raft"),
)
_NODE_RAFT = tuple(
    f"tests/node/raft/test_{name}.py"
    for name in ("driver", "lone_voter", "quorum", "requests", "changing_voters")
)
_COORDINATED = ("tests/unit/node/test_group_coordinator.py",)
_COORDINATORS = (
    "tests/unit/node/test_coordinator.py",
    "tests/unit/node/test_coordinator_loads.py",
    "tests/unit/node/test_coordinator_batches.py",
    "tests/unit/node/test_transaction_coordinator.py",
)
_CONNECTIONS = ("tests/unit/node/test_connection_places.py", "tests/node/test_quotas.py")
_FETCHERS = "tests/unit/node/test_replica_fetchers.py"
_CLEANING = ("tests/unit/storage/cleaner", "tests/unit/storage/log/test_compacted_log.py")
_TARGETS = (
    "tests/model/scenarios/test_scenarios.py",
    "tests/model/simulation/test_target_voters.py",
)
SUITES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("share_coordinator", ("tests/unit/node/test_share_coordinator.py",)),
    ("broker.share_partition", ("tests/unit/broker/share_partition",)),
    ("node.broker.share_fetch", ("tests/unit/node/test_share_fetch.py",)),
    ("broker", ("tests/unit/broker", _FETCHERS)),
    ("coordinator", ("tests/unit/coordinator", "tests/unit/groups", *_COORDINATED)),
    ("groups", ("tests/unit/groups", *_COORDINATED)),
    ("node.broker.coordinator", (*_COORDINATORS, *_COORDINATED)),
    ("node.broker.group_coordinator", _COORDINATED),
    ("node.broker.replica_fetchers", (_FETCHERS,)),
    ("node.broker.broker_logs", ("tests/unit/node/test_broker_logs.py",)),
    ("node.broker.own_broker", ("tests/unit/node/test_transaction_markers.py",)),
    ("controller.quorum_reassignment", ("tests/unit/controller", *_TARGETS)),
    ("metadata", ("tests/model/simulation/test_target_voters.py", "tests/unit/metadata")),
    ("raft", _RAFT),
    ("security", ("tests/unit/security",)),
    ("node.serving.request_handler", ("tests/unit/node/test_repeated_answers.py",)),
    ("node.serving", ("tests/node/test_sasl_sessions.py", *_CONNECTIONS)),
    ("wire", (*_RAFT, "tests/unit/storage")),
    ("node.raft", _NODE_RAFT),
    ("storage.cleaner", _CLEANING),
    (
        "storage.topic_log.unified_log",
        (
            *("tests/unit/broker/fetcher", "tests/unit/storage/directory/test_log_manager.py"),
            "tests/unit/storage/directory/test_open_files.py",
        ),
    ),
    ("storage", ("tests/unit/storage", "tests/unit/broker/fetcher", *_NODE_RAFT)),
    ("transactions", ("tests/unit/transactions",)),
    ("node.broker.transaction_coordinator", ("tests/node/test_transaction_coordinator.py",)),
    (
        "node.controller",
        (
            "tests/node/test_quorum_reassignment_proxy.py",
            "tests/node/raft/test_active_controller.py",
            "tests/unit/node/test_lifecycle.py",
        ),
    ),
    (
        "node.outbound",
        ("tests/node/test_leader_connection.py", "tests/node/test_quorum_reassignment_proxy.py"),
    ),
    (
        "node",
        (
            *("tests/node/test_broker_files.py", "tests/unit/node/test_lifecycle.py"),
            *("tests/node/test_protocol.py", "tests/node/test_cluster.py"),
        ),
    ),
    ("", ("tests/unit/controller", "tests/unit/metadata")),
)
"""Return the places of tests that may catch a bug in a package or module, fast ones first."""


def main(arguments: Sequence[str]) -> int:
    """Check or find what catches the bugs; return 1 where one is not caught."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.model.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", default=[""])
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--search", action="store_true")
    parser.add_argument("--worlds", type=int, metavar="N")
    parser.add_argument("--leave-ledger", action="store_true")
    parser.add_argument("--redigest", nargs="+", type=_renaming, metavar="OLD=NEW")
    options = parser.parse_args(arguments)
    if options.redigest:
        return _redigest(dict(options.redigest))
    ledger = read_ledger()
    sources = Sources()
    wanted = [
        mutant
        for mutant in MUTANTS
        if any(word in _description(mutant, sources) for word in options.only)
        and not (options.new and _is_known(mutant, ledger))
    ]
    measured: dict[str, Entry] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Scratch(Path(folder))
        for mutant in wanted:
            if options.worlds is not None:
                entry = _in_worlds(scratch, mutant, ledger[mutant.id], options.worlds)
            else:
                entry = _judge(scratch, mutant, ledger, searches=options.search)
            measured[mutant.id] = entry
            if not options.leave_ledger:
                # Another run may have written meanwhile.
                write_ledger(_known_bugs() | {mutant.id: entry})
    return _report(measured if options.leave_ledger else _known_bugs())


def _known_bugs() -> dict[str, Entry]:
    ledger = read_ledger()
    return {mutant.id: ledger[mutant.id] for mutant in MUTANTS if mutant.id in ledger}


def _redigest(names: Mapping[str, str]) -> int:
    ledger = read_ledger()
    entries, outdated = renamed_entries(ledger, MUTANTS, names=names, sources=Sources())
    write_ledger(entries)
    changed = sum(entries[bug_id] != entry for bug_id, entry in ledger.items())
    _say(f"{changed} digests are new; to be measured anew: {', '.join(outdated) or 'none'}")
    return int(bool(outdated))


def _renaming(text: str) -> tuple[str, str]:
    old, new = text.split("=")
    return old, new


def _description(mutant: Mutant, sources: Sources) -> str:
    return " ".join((mutant.id, *map(str, mutant.places(sources))))


def _suite(mutant: Mutant, sources: Sources) -> tuple[str, ...]:
    place = mutant.places(sources)[0]
    return next(tests for package, tests in SUITES if place.is_in(package))


def _is_known(mutant: Mutant, ledger: dict[str, Entry]) -> bool:
    entry = ledger.get(mutant.id)
    return entry is not None and entry.digest == mutant.digest and entry.caught_by is not None


def _in_worlds(scratch: Scratch, mutant: Mutant, known: Entry, count: int) -> Entry:
    try:
        with scratch.mutated(mutant):
            worlds = scratch.worlds_until_broken(count)
    except NoVerdictError as error:
        _say(f"{mutant.id}: no verdict: {error}")
        return known
    _say(f"{mutant.id}: {f'world {worlds}' if worlds else f'in none of {count} worlds'}")
    return replace(known, worlds=worlds)


def _judge(scratch: Scratch, mutant: Mutant, ledger: dict[str, Entry], *, searches: bool) -> Entry:
    began = monotonic()
    known = ledger.get(mutant.id)
    places: list[tuple[str, ...]] = []
    if known is not None and known.caught_by is not None:
        places.append((known.caught_by,))
    if searches:
        places.append(_suite(mutant, scratch.sources))
    verdict: Verdict | None = None
    for tests in places:
        try:
            verdict = verdict or _caught_by(scratch, mutant, tests)
        except NoVerdictError as error:
            _say(f"{mutant.id}: no verdict: {error}")
    seconds = round(monotonic() - began, 1)
    caught_by = None if verdict is None else verdict.test
    _say(f"{mutant.id}: {caught_by or 'NOT CAUGHT'} ({seconds} s)")
    return Entry(
        cause=mutant.cause,
        breaks=mutant.breaks,
        kind=mutant.kind.value,
        digest=mutant.digest,
        caught_by=caught_by,
        says="" if verdict is None else verdict.why[:200],
        seconds=seconds,
        worlds=None if known is None else known.worlds,
    )


def _caught_by(scratch: Scratch, mutant: Mutant, tests: Sequence[str]) -> Verdict | None:
    """Return the verdict of the first test that fails with the bug, and not without it."""
    while True:
        with scratch.mutated(mutant):
            verdict = scratch.run(tests)
        if verdict.has_passed:
            return None
        if scratch.is_healthy(verdict.test):
            return verdict


def _report(ledger: dict[str, Entry]) -> int:
    missed = [bug_id for bug_id, entry in ledger.items() if entry.caught_by is None]
    safety = [entry for entry in ledger.values() if entry.kind == Kind.SAFETY.value]
    caught = sum(entry.caught_by is not None for entry in safety)
    _say(
        f"{len(ledger) - len(missed)} of {len(ledger)} bugs are caught, "
        f"{caught} of {len(safety)} that endanger safety; missed: {', '.join(missed) or 'none'}"
    )
    return int(bool(missed))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
