"""Scripts of requests, run on a real controller and on ours, compared step by step.

How to use it::

    with Pair(java, folder) as pair:            # starts both controllers, alike and empty
        outcome = pair.run(script)              # a Script: kind, seed, steps
        assert not outcome.findings, outcome.report()

A step is an API's name, a version, and a body in Kafka's JSON names: what the body leaves out is
at its default, what the version cannot carry is left out, "$..." is looked up on each side (see
`view`). After each step the answers are compared field by field, and so are the records that came
into the two logs meanwhile. Ids that a side makes up, broker epochs and times are given names
first (see `comparing`). When a script is over, or failed, `reset` puts both sides back to a cluster
without topics and brokers; a script that changes more takes it back in `RESETS`.

`test_scripts` compares the whole of both logs once more, as the real kafka-dump-log shows them.
What is known to differ is listed in `test_deviations`. `shrink` makes a failing script small.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from tests.interop.differential.comparing import (
    ANY_API,
    Difference,
    Names,
    differences,
    is_failure,
    known_uuids,
)
from tests.interop.differential.metadata_log import LogRecord
from tests.interop.differential.script import AnyStep, Script, Silence, Step, features, heartbeat
from tests.interop.differential.sides import NODE_ID, SETTINGS, Side, without_own_registration
from tests.interop.differential.view import SettingsView, uuid_of
from tests.support.kafka.java import Java
from tests.support.node import STANDALONE, Node
from tests.support.waiting import NeverCameAboutError, asked_until, wait_for

from kvorum.wire.json_form import Json


def delete_topics(side: Side) -> None:
    topics = [{"name": None, "topicId": topic_id} for topic_id in side.view.topic_ids.values()]
    if topics:
        side.ask("DeleteTopics", {"topics": topics, "timeoutMs": 60_000})


def unregister_brokers(side: Side) -> None:
    for broker in sorted(side.view.epochs):
        side.ask("UnregisterBroker", {"brokerId": broker})


TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
KEPT_WHILE_ELR_IS_ON = "min.insync.replicas"
UPGRADE, DOWNGRADE = 1, 2


def widen_controllers(side: Side) -> None:
    """Register controllers that only a script knows with all features, so that none is in the way.

    Nobody can take them away again.
    """
    for node_id in sorted(side.view.settings.controllers - {NODE_ID}):
        body = {"controllerId": node_id, "incarnationId": uuid_of(8, 9), "features": features()}
        side.ask("ControllerRegistration", body)


def restore_features(side: Side) -> None:
    """Finalize the levels again that the side began with."""
    settings = side.view.settings
    for name, level in sorted(settings.first_features.items()):
        current = settings.features.get(name, 0)
        if current != level:
            _finalize(side, name, level, is_upgrade=level > current)
    for name, level in sorted(settings.features.items()):
        if level and name not in settings.first_features:
            _finalize(side, name, 0, is_upgrade=False)


def _finalize(side: Side, name: str, level: int, *, is_upgrade: bool) -> None:
    upgrade_type = UPGRADE if is_upgrade else DOWNGRADE
    update = {"feature": name, "maxVersionLevel": level, "upgradeType": upgrade_type}
    side.ask("UpdateFeatures", {"featureUpdates": [update], "timeoutMs": 60_000})


def remove_configs(side: Side) -> None:
    """Remove what is set for brokers, groups and client metrics; topics are gone with theirs.

    What must stay is set to its default: real Kafka takes min.insync.replicas with blanks around
    the number, and fails over it from then on.
    """
    settings = side.view.settings
    wanted = [
        {
            "resourceType": kind,
            "resourceName": name,
            "configs": [_reset(settings, kind, key) for key in sorted(keys)],
        }
        for (kind, name), keys in sorted(settings.configs.items())
        if kind != TOPIC and keys
    ]
    if wanted:
        side.ask("IncrementalAlterConfigs", {"resources": wanted})


def _reset(settings: SettingsView, kind: int, key: str) -> dict[str, Json]:
    is_elr_on = settings.features.get("eligible.leader.replicas.version")
    if kind == BROKER and key == KEPT_WHILE_ELR_IS_ON and is_elr_on:
        return {"name": key, "configOperation": SET, "value": "1"}
    return {"name": key, "configOperation": DELETE, "value": None}


def remove_quotas(side: Side) -> None:
    entries = [
        {
            "entity": [{"entityType": kind, "entityName": name} for kind, name in entity],
            "ops": [{"key": key, "value": 0.0, "remove": True} for key in sorted(keys)],
        }
        for entity, keys in side.view.settings.quotas.items()
        if keys
    ]
    if entries:
        side.ask("AlterClientQuotas", {"entries": entries})


def remove_credentials(side: Side) -> None:
    for name, mechanism in sorted(side.view.settings.credentials):
        deletion = {"name": name, "mechanism": mechanism}
        side.ask("AlterUserScramCredentials", {"deletions": [deletion], "upsertions": []})


RESETS: Final[tuple[Callable[[Side], None], ...]] = (
    delete_topics,
    unregister_brokers,
    widen_controllers,
    restore_features,
    remove_configs,
    remove_quotas,
    remove_credentials,
)


FENCE: Final = 1
OUR_OWN_WORDS: Final = ".documentation"
"""Texts of ours that differ for good."""
LATE_ANSWERS: Final = frozenset(
    {"DescribeAcls", "DescribeConfigs", "DescribeCluster", "DescribeUserScramCredentials"}
)
"""Requests that are answered from the published image, which comes after the answer to a write."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A step after which the two sides differ."""

    step_index: int
    step: AnyStep
    differences: tuple[Difference, ...]

    def __str__(self) -> str:
        shown = "\n    ".join(str(difference) for difference in self.differences[:12])
        return f"  step {self.step_index}: {self.step.as_json()}\n    {shown}"


@dataclass(frozen=True, slots=True)
class Span:
    """The records of a step: the end offset in either log, the real one first."""

    api: str
    is_placed: bool
    end_offsets: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a script: differences, uuids of its own, and the places of its records."""

    script: Script
    findings: tuple[Finding, ...]
    known_uuids: AbstractSet[str]
    start_offsets: tuple[int, int]
    spans: tuple[Span, ...]

    @property
    def record_count(self) -> int:
        """The number of records that the real side wrote."""
        return self.spans[-1].end_offsets[0] - self.start_offsets[0] if self.spans else 0

    def report(self) -> str:
        found = "\n".join(str(finding) for finding in self.findings)
        return f"{self.script.name}\n{found}"


@dataclass
class Pair:
    """A real controller and one of ours; use as a context.

    `overrides` are settings of both; `release` is the release that the directory is formatted for;
    `prepare` puts more into the formatted directory.
    """

    java: Java
    folder: Path
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    release: str | None = None
    prepare: Callable[[Path], None] | None = None

    def __enter__(self) -> Self:
        settings = {**SETTINGS, **self.overrides}
        real = Node(self.folder / "real", settings, node_id=NODE_ID, java=self.java)
        ours = Node(self.folder / "ours", settings, node_id=NODE_ID)
        level = () if self.release is None else ("--release-version", self.release)
        real.format((*STANDALONE, *level))
        if self.prepare is not None:
            self.prepare(real.data)
        shutil.copytree(real.data, ours.data)
        self.real, self.ours = Side("real", real), Side("ours", ours)
        try:
            for side in self.sides:
                side.node.launch()
            for side in self.sides:
                side.wait_until_active()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both, the real one first."""
        return self.real, self.ours

    def stop(self) -> None:
        for side in self.sides:
            side.stop()

    def run(self, script: Script, *, is_stopped_by_findings: bool = True) -> Outcome:
        """Run a script from an empty cluster on, and empty the cluster again."""
        for side in self.sides:
            side.wait_until_leading()
            side.take_records()
            side.view.begin_script()
        known: set[str] = set()
        start = self._end_offsets()
        findings: list[Finding] = []
        spans: list[Span] = []
        for index, step in enumerate(script.steps):
            found = self._run_step(step, known)
            api, is_placed = _facts(step)
            spans.append(Span(api, is_placed, self._end_offsets()))
            if found:
                findings.append(Finding(index, step, tuple(found)))
                if is_stopped_by_findings:
                    break
        self.reset()
        return Outcome(script, tuple(findings), known, start, tuple(spans))

    def _end_offsets(self) -> tuple[int, int]:
        return self.real.log.end_offset, self.ours.log.end_offset

    def reset(self) -> None:
        """Take topics, brokers and whatever else a script may leave behind away."""
        for side in self.sides:
            side.wait_until_leading()
            for take_back in RESETS:
                take_back(side)
                side.take_records()

    def _run_step(self, step: AnyStep, known: set[str]) -> list[Difference]:
        api, is_placed = _facts(step)
        if isinstance(step, Silence):
            answers: tuple[Json, Json] = (None, None)
            records = self._keep_silent(step)
        else:
            for side in self.sides:
                known |= known_uuids(side.send(step))
            answers = (self.real.receive(step), self.ours.receive(step))
            records = (taken(self.real, step.awaited), taken(self.ours, step.awaited))
            if step.api in LATE_ANSWERS:
                answers = self._settled_answers(step, answers, known)
        real, ours = (names_of(side, known) for side in self.sides)
        found = list(
            differences(real.answer(api, answers[0]), ours.answer(api, answers[1]), "answer")
        )
        found.extend(
            differences(
                real.records(api, records[0], is_placed=is_placed),
                ours.records(api, records[1], is_placed=is_placed),
                "records",
            )
        )
        return found

    def _settled_answers(
        self, step: Step, answers: tuple[Json, Json], known: set[str]
    ) -> tuple[Json, Json]:
        """Ask again while the answers differ: real Kafka may not have published the last write.

        Who failed over the question does so again.
        """
        real, ours = (names_of(side, known) for side in self.sides)

        def are_alike(said: tuple[Json, Json]) -> bool:
            shown = real.answer(step.api, said[0]), ours.answer(step.api, said[1])
            return all(one.where.endswith(OUR_OWN_WORDS) for one in differences(*shown, ""))

        def ask() -> tuple[Json, Json]:
            for side in self.sides:
                side.send(step)
            return self.real.receive(step), self.ours.receive(step)

        if are_alike(answers) or any(is_failure(answer) for answer in answers):
            return answers
        return asked_until(ask, are_alike, f"both answer {step.api} alike")

    def _keep_silent(self, step: Silence) -> tuple[Sequence[LogRecord], Sequence[LogRecord]]:
        """Wait until both sides write that the silent brokers are fenced; return what they wrote.

        A broker that is fenced already is fenced again when its session ends.
        """
        made: tuple[list[LogRecord], list[LogRecord]] = ([], [])

        def are_fenced() -> bool:
            for side, records in zip(self.sides, made, strict=True):
                for broker in step.alive:
                    side.ask("BrokerHeartbeat", heartbeat(broker, currentMetadataOffset="$end"))
                records.extend(side.take_records())
            return all(fenced_in(records).issuperset(step.silent) for records in made)

        # A record that one side never writes is a finding.
        with suppress(NeverCameAboutError):
            wait_for(are_fenced, f"both have fenced {step.silent}")
        return made


def taken(side: Side, awaited: int) -> list[LogRecord]:
    """Return what a side has written, at least so many records, if they come."""
    records = without_own_registration(side.take_records())

    def have_come() -> bool:
        records.extend(without_own_registration(side.take_records()))
        return len(records) >= awaited

    if len(records) < awaited:
        # Records that never come are a finding.
        with suppress(NeverCameAboutError):
            wait_for(have_come, f"{side.name} writes {awaited} records")
    return records


def fenced_in(records: Sequence[LogRecord]) -> set[int]:
    return {
        record.data["brokerId"]
        for record in records
        if record.type == "BrokerRegistrationChangeRecord" and record.data.get("fenced") == FENCE
    }


def _facts(step: AnyStep) -> tuple[str, bool]:
    return (step.api, step.is_placed) if isinstance(step, Step) else (ANY_API, False)


def names_of(side: Side, known: AbstractSet[str]) -> Names:
    return Names(side.view, known, side.own_names)


def shrink(script: Script, still_fails: Callable[[Script], bool]) -> Script:
    """Return a script that still fails, with as many steps dropped as can be."""
    size = max(1, len(script.steps) // 2)
    while True:
        for smaller in _without_parts(script, size):
            if still_fails(smaller):
                script = smaller
                break
        else:
            if size == 1:
                return script
            size //= 2


def _without_parts(script: Script, size: int) -> Iterator[Script]:
    for start in range(len(script.steps) - size, -1, -1):
        yield replace(script, steps=script.steps[:start] + script.steps[start + size :])
