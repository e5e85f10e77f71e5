"""The decisions about a reassignment, step after step (KIP-642).

The active controller takes the steps; under a leader that does not know of the target voters,
another controller has it take them. Each has a `Pursuit` for as long as that lasts: how far the
targets are behind, and what was refused, is all that is kept between two decisions. The target
voters themselves are read from the metadata each time, so that the last one counts, and the next
one goes on from there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

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
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.target_voters import (
    InvalidTargetVotersError,
    parse_target_voters,
    recorded_target_voters,
)
from kvorum.metadata.voter_key import VoterKey

LOOKS_PER_ELECTION_TIMEOUT: Final = 20
"""The time between two looks at the targets' progress; a round between two looks is timed late."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The step to take now, and the recorded target voters that it is a step towards."""

    target_text: str
    step: Step


class Pursuit:
    """Decides on one step after the other from the present voters to the target voters."""

    def __init__(self, *, election_timeout_ms: float, fetch_timeout_ms: float) -> None:
        self._catch_up = CatchUp(election_timeout_ms=election_timeout_ms)
        self._fetch_timeout_ms = fetch_timeout_ms
        self._refusals = Counter[VoterKey]()

    def decide(
        self, image: MetadataImage, quorum: QuorumDescription, now_ms: float
    ) -> Decision | None:
        """Return what to do now, None without target voters; `image` is what is committed."""
        text = recorded_target_voters(image)
        if text is None:
            return None
        return Decision(text, self._next_step(text, image, quorum, now_ms))

    def refused(self, step: Step) -> None:
        """Note that the leader has refused a step: another replica may be added first."""
        if isinstance(step, AddVoter):
            self._refusals[step.key] += 1

    def _next_step(
        self, text: str, image: MetadataImage, quorum: QuorumDescription, now_ms: float
    ) -> Step:
        try:
            targets = parse_target_voters(text)
        except InvalidTargetVotersError as error:
            return Blocked(BlockReason.UNREADABLE, str(error))
        catch_up = self._catch_up
        catch_up.observe(quorum, assignment_of(targets, quorum).new, now_ms)
        circumstances = Circumstances(
            controllers=image.cluster.controllers,
            fetch_timeout_ms=self._fetch_timeout_ms,
            has_caught_up=lambda key: catch_up.has_caught_up(key, now_ms),
            progress_text=lambda key: catch_up.describe(key, now_ms),
            refusals=self._refusals,
        )
        return next_step(targets, quorum, circumstances)


def pause_ms(election_timeout_ms: float) -> float:
    """Return how long to wait before the quorum is looked at again."""
    return election_timeout_ms / LOOKS_PER_ELECTION_TIMEOUT
