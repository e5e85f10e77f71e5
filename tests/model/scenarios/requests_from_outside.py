"""Requests that a scenario puts to a node from outside: as text, and as the core's messages.

    ask 2 vote from=1 epoch=3 log=4@2 [voter=2] [pre]    log=OFFSET@EPOCH
    ask 2 begin leader=1 epoch=3 [voter=2]
    ask 2 end leader=1 epoch=3 preferred=3,2
    ask 1 fetch from=2 epoch=1 log=4@1 [wait=500] [watermark=-1]
    ask 1 part from=2 epoch=1 id=5@1 [position=0]        a part of a snapshot
    ask 1 describe
    ask 1 add voter=4 [ack=append]                       voter may be left out
    ask 1 remove voter=3
    ask 1 update voter=2 epoch=1 [at=host9] [versions=0-1]

A replica is written ``2``, ``2/7`` (in a directory that is not its usual one), or ``2/-`` (without
a directory id).
"""

import re
from collections.abc import Callable, Iterable, Mapping

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
from kvorum.node.raft.inbound_requests import read_request
from kvorum.node.raft.translation import add_raft_voter, remove_raft_voter
from kvorum.raft import Endpoint, OffsetAndEpoch, RaftConfig, ReplicaKey
from kvorum.raft import messages as msg
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.primitives import Message
from kvorum.wire.uuid_text import uuid_from_text

LISTENER = "CONTROLLER"
Fields = Mapping[str, str]


def parse_request(kind: str, words: list[str]) -> msg.Request:
    fields = {name: value for name, _, value in (word.partition("=") for word in words)}
    makers: dict[str, Callable[[Fields], msg.Request]] = {
        "vote": _vote,
        "begin": _begin,
        "end": _end,
        "fetch": _fetch,
        "part": _part,
        "describe": _describe,
        "add": _add,
        "remove": _remove,
        "update": _update,
    }
    return makers[kind](fields)


def replica(text: str) -> ReplicaKey:
    node, slash, directory = text.partition("/")
    if directory == "-":
        return ReplicaKey(int(node))
    return ReplicaKey(int(node), directory_of(int(directory if slash else node)))


def directory_of(number: int) -> bytes:
    """Return the directory id that a small number stands for."""
    return bytes([number % 256]) * 16


def endpoints_of(node_id: int) -> tuple[Endpoint, ...]:
    """Return where a node listens."""
    return (Endpoint(LISTENER, f"host{node_id}", 9093),)


def _position(text: str) -> OffsetAndEpoch:
    offset, _, epoch = text.partition("@")
    return OffsetAndEpoch(int(offset), int(epoch))


def _voter(fields: Fields) -> ReplicaKey | None:
    return replica(fields["voter"]) if "voter" in fields else None


def _vote(fields: Fields) -> msg.Request:
    return msg.VoteRequest(
        epoch=int(fields["epoch"]),
        replica=replica(fields["from"]),
        voter=_voter(fields),
        log_end=_position(fields["log"]),
        is_pre_vote="pre" in fields,
    )


def _begin(fields: Fields) -> msg.Request:
    leader_id = int(fields["leader"])
    return msg.BeginQuorumEpochRequest(
        epoch=int(fields["epoch"]),
        leader_id=leader_id,
        voter=_voter(fields),
        endpoints=endpoints_of(leader_id),
    )


def _end(fields: Fields) -> msg.Request:
    preferred = [text for text in fields.get("preferred", "").split(",") if text]
    return msg.EndQuorumEpochRequest(
        epoch=int(fields["epoch"]),
        leader_id=int(fields["leader"]),
        preferred=tuple(map(replica, preferred)),
        endpoints=(),
    )


def _fetch(fields: Fields) -> msg.Request:
    return msg.FetchRequest(
        replica=replica(fields["from"]) if "from" in fields else None,
        epoch=int(fields["epoch"]),
        position=_position(fields["log"]),
        max_wait_ms=int(fields.get("wait", "0")),
        bytes_max=1 << 20,
        high_watermark=int(fields["watermark"]) if "watermark" in fields else None,
    )


def _part(fields: Fields) -> msg.Request:
    return msg.FetchSnapshotRequest(
        replica=replica(fields["from"]),
        epoch=int(fields["epoch"]),
        snapshot_id=_position(fields["id"]),
        position=int(fields.get("position", "0")),
        bytes_max=1,
    )


def _describe(fields: Fields) -> msg.Request:
    assert not fields
    return msg.DescribeQuorumRequest()


def _add(fields: Fields) -> msg.Request:
    voter = _voter(fields)
    return msg.AddRaftVoterRequest(
        voter=voter,
        endpoints=endpoints_of(0 if voter is None else voter.id),
        acks_when_committed=fields.get("ack") != "append",
    )


def _remove(fields: Fields) -> msg.Request:
    return msg.RemoveRaftVoterRequest(_voter(fields))


def _update(fields: Fields) -> msg.Request:
    voter = _voter(fields)
    lowest, _, highest = fields.get("versions", "0-1").partition("-")
    host = fields.get("at", f"host{0 if voter is None else voter.id}")
    return msg.UpdateRaftVoterRequest(
        epoch=int(fields["epoch"]),
        voter=voter,
        endpoints=(Endpoint(LISTENER, host, 9093),),
        kraft_version_min=int(lowest),
        kraft_version_max=int(highest),
    )


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
    """The memory of one leader between two steps; another one begins again.

    The target voters are a record of the log, so every node knows them from what is committed. The
    leader takes the steps, one at a time, by the requests that a real node puts to itself.
    """

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
