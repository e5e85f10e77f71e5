"""The target voters in a scenario: the real decisions, taken over the cores of its nodes.

The target voters are a record of the log, so every node knows them from what is committed. The
leader takes the steps, one at a time, by the requests that a real node puts to itself.
"""

import re
from collections.abc import Iterable

from tests.model.scenarios.requests_from_outside import directory_of, endpoints_of

from kvorum.controller.quorum_description import QuorumDescription
from kvorum.controller.quorum_reassignment.next_step import Blocked, BlockReason, Step
from kvorum.controller.quorum_reassignment.pursuit import Pursuit
from kvorum.controller.quorum_reassignment.quorum_targets import clear_reached_targets
from kvorum.controller.quorum_reassignment.requests import (
    VoterChange,
    VoterResponse,
    refusal_of,
    request_of,
)
from kvorum.metadata.configs_image import CLUSTER_RESOURCE
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.voters import TARGET_VOTERS
from kvorum.node.raft.peer_exchange import read_request
from kvorum.node.raft.translation import add_raft_voter, remove_raft_voter
from kvorum.raft import RaftConfig
from kvorum.raft import messages as msg
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_from_text

TARGETS, NO_TARGETS = "target voters ", "no target voters"
CLUSTER_ID = "scenario"
_KEY = re.compile(r"(\d+):([\w-]{22})")


def image_of(texts: Iterable[str], controllers: Iterable[int]) -> MetadataImage:
    """Return what records say, for a cluster in which some controllers have registered."""
    image = MetadataImage()
    for node_id in controllers:
        image = image.apply(_registration(node_id), 0, -1)
    for text in texts:
        if text == NO_TARGETS or text.startswith(TARGETS):
            image = image.apply(_targets(text), 0, -1)
    return image


def _targets(text: str) -> ConfigRecord:
    value = None if text == NO_TARGETS else text.removeprefix(TARGETS)
    return ConfigRecord(*CLUSTER_RESOURCE, TARGET_VOTERS, value)


def _registration(node_id: int) -> RegisterControllerRecord:
    return RegisterControllerRecord(
        controller_id=node_id,
        incarnation_id=directory_of(node_id),
        end_points=[
            RegisterControllerRecord.ControllerEndpoint(name=one.name, host=one.host, port=one.port)
            for one in endpoints_of(node_id)
        ],
    )


class Reassigning:
    """The memory of one leader between two steps; another one begins again."""

    def __init__(self, config: RaftConfig) -> None:
        self._pursuit = Pursuit(
            election_timeout_ms=config.election_timeout_ms, fetch_timeout_ms=config.fetch_timeout_ms
        )
        self._waits_for: BlockReason | None = None
        self.is_busy = False

    def decide(
        self, image: MetadataImage, quorum: QuorumDescription, now: float
    ) -> tuple[str, Step] | None:
        """Return the targets and the next step, None where there is nothing new to say or do."""
        decision = None if self.is_busy else self._pursuit.decide(image, quorum, now)
        if decision is None:
            return None
        step = decision.step
        is_known = isinstance(step, Blocked) and step.reason is self._waits_for
        self._waits_for = step.reason if isinstance(step, Blocked) else None
        return None if is_known else (decision.target_text, step)

    def answered(self, step: VoterChange, response: msg.Response) -> None:
        """Take the answer to a step."""
        self.is_busy = False
        if refusal_of(step, _written(response)) is not None:
            self._pursuit.refused(step)


def request_for(step: VoterChange) -> msg.Request:
    """Return the request by which a step is taken."""
    request = read_request(request_of(step, cluster_id=CLUSTER_ID), cluster_id=CLUSTER_ID)
    assert not isinstance(request, Message)
    return request


def _written(response: msg.Response) -> VoterResponse:
    if isinstance(response, msg.AddRaftVoterResponse):
        return add_raft_voter.write_answer(response)
    assert isinstance(response, msg.RemoveRaftVoterResponse)
    return remove_raft_voter.write_answer(response)


def ends_targets(image: MetadataImage, text: str) -> bool:
    """Tell whether target voters that are reached are still those in the log."""
    return bool(clear_reached_targets(image, text))


def told(step: Step) -> str:
    """Return a step as the scenario files write it: with the directory where it is unusual."""

    def short(found: re.Match[str]) -> str:
        node_id, directory = int(found[1]), uuid_from_text(found[2])[0]
        return f"{node_id}" if directory == node_id else f"{node_id}/{directory}"

    return _KEY.sub(short, str(step))
