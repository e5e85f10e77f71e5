"""Every field of every request of a controller at its limits and beyond, beside a real one.

The newest version of each request; all versions with KVORUM_BAD_INPUT=all.
"""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest
from tests.interop.differential.bad_input_scripts import CLUSTER, GOOD, bad_input_scripts
from tests.interop.differential.comparing import Difference, error_codes, is_object
from tests.interop.differential.harness import OUR_OWN_WORDS, Finding, Pair
from tests.interop.differential.script import API_KEYS, Script
from tests.interop.differential.sides import NO_ANSWER, Side
from tests.support.kafka.java import Java

from kvorum.wire.apis import request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.json_form import Json

FAILED: Final = frozenset({ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_CONTROLLER})
NOBODY: Final = 9_999
FAILURE_OF_OURS: Final = "The controller failed"


@dataclass
class Survivors:
    """Two controllers that are started again when the real one has ended."""

    java: Java
    folder: Path
    pair: Pair | None = None
    started: int = 0

    def run(self, script: Script, *, set_up: int) -> list[Finding]:
        """Return what differs; the first `set_up` steps are made again after each failure."""
        findings: list[Finding] = []
        left: Script | None = script
        while left is not None:
            found, left = self._run_until_a_failure(left, set_up)
            findings.extend(found)
        return findings

    def close(self) -> None:
        if self.pair is not None:
            self.pair.stop()
            self.pair = None

    def _run_until_a_failure(
        self, script: Script, set_up: int
    ) -> tuple[list[Finding], Script | None]:
        pair = self._running()
        try:
            outcome = pair.run(script)
        except OSError:
            # The real one is gone; which step it was shows when they are made one at a time.
            self.close()
            return self._one_by_one(script, set_up), None
        if not outcome.findings:
            return [], None
        (finding,) = outcome.findings
        steps = script.steps[:set_up] + script.steps[max(finding.step_index + 1, set_up) :]
        left = replace(script, steps=steps) if len(steps) > set_up else None
        if not is_failure_of_real(finding.differences):
            return [finding], left
        if not self._is_revived(pair):
            self.close()
        return [], left

    def _one_by_one(self, script: Script, set_up: int) -> list[Finding]:
        findings: list[Finding] = []
        for step in script.steps[set_up:]:
            pair = self._running()
            try:
                outcome = pair.run(replace(script, steps=(*script.steps[:set_up], step)))
            except OSError:
                assert pair.ours.node.process.is_running, pair.ours.node.process.last_words()
                self.close()
                continue
            failed = [one for one in outcome.findings if is_failure_of_real(one.differences)]
            findings.extend(one for one in outcome.findings if one not in failed)
            if failed and not self._is_revived(pair):
                self.close()
        return findings

    def _running(self) -> Pair:
        if self.pair is None:
            self.started += 1
            self.pair = Pair(self.java, self.folder / str(self.started)).__enter__()
        return self.pair

    def _is_revived(self, pair: Pair) -> bool:
        """Wait until both sides decide again; False where the real one has ended."""

        def has_come_back() -> bool:
            if not pair.real.node.process.is_running:
                return True
            decide = all(_decides(side) for side in pair.sides)
            if decide:
                pair.reset()
            return decide

        state = "both decide again, or it has ended"
        pair.real.wait_until(has_come_back, state, not_yet=(OSError,))
        return pair.real.node.process.is_running


def _decides(side: Side) -> bool:
    answer = side.ask("UnregisterBroker", {"brokerId": NOBODY})
    return is_object(answer) and answer["errorCode"] not in FAILED


def is_failure_of_real(differences: tuple[Difference, ...]) -> bool:
    """Tell whether the real controller failed where ours refused: it wrote nothing then."""
    if any(one.ours == NO_ANSWER or _has_failed(one.ours, one.where) for one in differences):
        return False
    if any(one.where.startswith("records") and one.ours for one in differences):
        return False
    return any(one.real == NO_ANSWER or _has_failed(one.real, one.where) for one in differences)


def _has_failed(value: Json, where: str) -> bool:
    if where.endswith("errorCode") and value in FAILED:
        return True
    return any(inner in FAILED for inner in error_codes(value))


IS_WHOLE = os.environ.get("KVORUM_BAD_INPUT") == "all"


@pytest.fixture(scope="module")
def survivors(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Survivors]:
    """Both controllers, for all requests."""
    with closing(Survivors(java, tmp_path_factory.mktemp("bad-input"))) as survivors:
        yield survivors


def _versions(api: str) -> range:
    kind = request_class(API_KEYS[api])
    return range(kind.MIN_VERSION if IS_WHOLE else kind.MAX_VERSION, kind.MAX_VERSION + 1)


@pytest.mark.slow
@pytest.mark.parametrize("api", GOOD)
def test_no_value_of_a_field_is_met_otherwise_than_by_kafka(api: str, survivors: Survivors) -> None:
    findings = [
        finding
        for version in _versions(api)
        for script in bad_input_scripts(api, version)
        for finding in survivors.run(script, set_up=len(CLUSTER))
        if not all(one.where.endswith(OUR_OWN_WORDS) for one in finding.differences)
    ]
    assert not findings, "\n".join(str(finding)[:2000] for finding in findings)
    if survivors.pair is not None:
        assert FAILURE_OF_OURS not in survivors.pair.ours.node.log_text
