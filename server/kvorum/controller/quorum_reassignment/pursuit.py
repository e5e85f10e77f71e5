"""The next step towards the recorded wish, and what is remembered from one step to the next.

The leader that takes the steps has one, and so has a controller that acts in its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kvorum.controller.quorum_description import QuorumDescription
from kvorum.controller.quorum_reassignment.catch_up import CatchUp
from kvorum.controller.quorum_reassignment.next_step import (
    AddVoter,
    Blocked,
    BlockReason,
    Circumstances,
    Step,
    assignment_of,
    next_step,
)
from kvorum.metadata.cluster_image import ControllerRegistration
from kvorum.metadata.target_voters import InvalidTargetVotersError, parse_target_voters
from kvorum.metadata.voter_key import VoterKey


class Pursuit:
    """Decides step after step; nothing of it has to outlive the one who takes them."""

    def __init__(self, *, election_timeout_ms: float, fetch_timeout_ms: float) -> None:
        self._fetch_timeout_ms = fetch_timeout_ms
        self._catch_up = CatchUp(election_timeout_ms=election_timeout_ms)
        self._refusals = Counter[VoterKey]()

    def next_step(
        self,
        text: str,
        quorum: QuorumDescription,
        controllers: Mapping[int, ControllerRegistration],
        *,
        now_ms: float,
    ) -> Step:
        """Return the next step to the target voters that `text` lists."""
        try:
            targets = parse_target_voters(text)
        except InvalidTargetVotersError as error:
            return Blocked(BlockReason.UNREADABLE, str(error))
        self._catch_up.observe(quorum, assignment_of(targets, quorum).new, now_ms)
        circumstances = Circumstances(
            controllers=controllers,
            fetch_timeout_ms=self._fetch_timeout_ms,
            has_caught_up=lambda key: self._catch_up.has_caught_up(key, now_ms),
            progress_text=lambda key: self._catch_up.describe(key, now_ms),
            refusals=self._refusals,
        )
        return next_step(targets, quorum, circumstances)

    def was_refused(self, step: Step) -> None:
        """Remember that the leader has refused a step: another target gets its turn first."""
        if isinstance(step, AddVoter):
            self._refusals[step.key] += 1
