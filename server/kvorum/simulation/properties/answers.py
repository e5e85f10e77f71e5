"""Requests and their answers as they cross the wire: P3, P6, P15, P20, P22, P23."""

from kvorum.node.raft.inbound_requests import read_request
from kvorum.raft import ReplicaKey
from kvorum.raft import messages as core
from kvorum.simulation.properties.catalogue import P6, P15, P20, P22, P23, Checks
from kvorum.simulation.properties.elections import Elections
from kvorum.simulation.properties.node_facts import NodeMemory
from kvorum.simulation.properties.shared_log import SharedLog
from kvorum.storage.log.batch_header import HEADER_SIZE, read_header, split_batches
from kvorum.wire.messages.begin_quorum_epoch import BeginQuorumEpochResponse
from kvorum.wire.messages.end_quorum_epoch import EndQuorumEpochResponse
from kvorum.wire.messages.fetch import FetchRequest, FetchResponse
from kvorum.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from kvorum.wire.messages.vote import VoteResponse
from kvorum.wire.primitives import Message

_QUORUM_ERRORS = frozenset({0, 42, 74, 75, 104, 3})
# The error codes with which Kafka's own nodes may answer each kind of request.
_FITTING: dict[type[Message], frozenset[int]] = {
    VoteResponse: _QUORUM_ERRORS | {125},
    BeginQuorumEpochResponse: _QUORUM_ERRORS | {125},
    EndQuorumEpochResponse: _QUORUM_ERRORS | {125},
    FetchResponse: _QUORUM_ERRORS | {6, 8, -1},
    FetchSnapshotResponse: _QUORUM_ERRORS | {6, 8, 98, 99},
}


class Answers:
    """The checks of the requests and responses between nodes."""

    def __init__(self, checks: Checks, *, elections: Elections, shared: SharedLog) -> None:
        self._checks = checks
        self._elections = elections
        self._shared = shared

    def leaving_request(self, memory: NodeMemory, request: Message) -> None:
        """Check a request that a node sends."""
        if not _is_quorums(request):
            return
        asked = read_request(request, cluster_id=memory.node.settings.cluster_id)
        if isinstance(asked, core.VoteRequest):
            self._elections.check_known_epoch(memory, asked.epoch)
            self._elections.check_vote(memory, asked, memory.key)
        elif isinstance(
            asked,
            core.BeginQuorumEpochRequest
            | core.EndQuorumEpochRequest
            | core.FetchRequest
            | core.FetchSnapshotRequest,
        ):
            self._elections.check_known_epoch(memory, asked.epoch)
        if isinstance(asked, core.FetchRequest) and not memory.is_log_damaged:
            durable = memory.scan.durable_end_offset
            start = 0 if memory.node.log is None else memory.node.log.log_start_offset
            text = f"{memory.name} fetches from {asked.position.offset} and has {durable} durably"
            self._checks.demand(P6, text, holds=asked.position.offset <= max(durable, start))

    def leaving_response(self, memory: NodeMemory, request: Message, response: Message) -> None:
        """Check a response that leaves a node."""
        error = error_of(response)
        fitting = _FITTING.get(type(response))
        if error is not None and fitting is not None:
            text = f"{memory.name} answers {type(response).__name__} with error {error}"
            self._checks.demand(P20, text, holds=error in fitting)
        epoch = epoch_of(response)
        if epoch is not None:
            self._elections.check_known_epoch(memory, epoch)
        own = memory.node.settings.cluster_id
        asked = read_request(request, cluster_id=own) if _is_quorums(request) else None
        if isinstance(asked, Message):
            self._check_cluster(memory, request, error)
        elif isinstance(asked, core.VoteRequest) and isinstance(response, VoteResponse):
            self._check_vote(memory, asked, response, error)
        elif isinstance(asked, core.BeginQuorumEpochRequest):
            self._check_voter(memory, asked.voter, error)
        if isinstance(response, FetchResponse) and isinstance(request, FetchRequest):
            self._check_records(memory, request, response)
        if isinstance(response, FetchSnapshotResponse) and isinstance(
            request, FetchSnapshotRequest
        ):
            for topic in response.topics:
                for partition in topic.partitions:
                    size = len(partition.unaligned_records or b"")
                    self._check_size(memory, size, request.max_bytes, first=0)

    def _check_cluster(self, memory: NodeMemory, request: Message, error: int | None) -> None:
        named: object = getattr(request, "cluster_id", None)
        if named in {None, memory.node.settings.cluster_id}:
            return
        text = f"{memory.name} answers a request for cluster {named} with error {error}"
        self._checks.demand(P15, text, holds=error == core.Error.INCONSISTENT_CLUSTER_ID)

    def _check_vote(
        self, memory: NodeMemory, asked: core.VoteRequest, response: VoteResponse, error: int | None
    ) -> None:
        is_granted = bool(response.topics) and response.topics[0].partitions[0].vote_granted
        if is_granted:
            self._elections.check_vote(memory, asked, asked.replica)
        self._check_voter(memory, asked.voter, error)
        if asked.voter is not None and not _is_node(asked.voter, memory.key):
            text = f"{memory.name} gives the vote of {asked.voter}"
            self._checks.demand(P15, text, holds=not is_granted)

    def _check_voter(self, memory: NodeMemory, voter: ReplicaKey | None, error: int | None) -> None:
        """Demand that a request for another voter is refused: P15."""
        if voter is not None and not _is_node(voter, memory.key):
            text = f"{memory.name} answers a request for {voter} with error {error}"
            self._checks.demand(P15, text, holds=error != core.Error.NONE)

    def _check_records(
        self, memory: NodeMemory, request: FetchRequest, response: FetchResponse
    ) -> None:
        """Demand that served records are sound and were written: P22; and not too many: P23."""
        for topic in response.responses:
            for partition in topic.partitions:
                data = memoryview(partition.records or b"")
                if not data:
                    continue
                first = read_header(data).size if len(data) >= HEADER_SIZE else 0
                self._check_size(memory, len(data), request.max_bytes, first=first)
                self._check_bytes(memory, data)

    def _check_bytes(self, memory: NodeMemory, data: memoryview) -> None:
        try:
            found = [
                (header.base_offset, header.leader_epoch, header.last_offset, header.crc)
                for header, _ in split_batches(data)
            ]
        except ValueError as error:
            self._checks.demand(P22, f"{memory.name} serves {error}", holds=False)
            return
        for base_offset, epoch, last_offset, crc in found:
            text = f"{memory.name} serves a batch at {base_offset} of {epoch} that nobody wrote"
            known = self._shared.is_known(
                base_offset=base_offset, epoch=epoch, last_offset=last_offset, crc=crc
            )
            # Behind damage only the node itself can read its log.
            is_hidden = memory.is_log_damaged and base_offset >= memory.scanned_end
            self._checks.demand(P22, text, holds=known or is_hidden)

    def _check_size(self, memory: NodeMemory, size: int, wanted: int, *, first: int) -> None:
        text = f"{memory.name} answers with {size} bytes where {wanted} were asked for"
        self._checks.demand(P23, text, holds=size <= max(wanted, first))


def _is_node(asked: ReplicaKey, own: ReplicaKey) -> bool:
    return asked.id == own.id and asked.directory_id in {None, own.directory_id}


def _is_quorums(request: Message) -> bool:
    return type(request).__name__ in {
        "VoteRequest",
        "BeginQuorumEpochRequest",
        "EndQuorumEpochRequest",
        "FetchRequest",
        "FetchSnapshotRequest",
    }


def error_of(response: Message) -> int | None:
    """Return the error of a quorum response: its top-level one, else its partition's."""
    codes: list[int]
    match response:
        case FetchResponse():
            codes = [one.error_code for topic in response.responses for one in topic.partitions]
        case (
            VoteResponse()
            | BeginQuorumEpochResponse()
            | EndQuorumEpochResponse()
            | FetchSnapshotResponse()
        ):
            codes = [one.error_code for topic in response.topics for one in topic.partitions]
        case _:
            return None
    return response.error_code or (codes[0] if codes else 0)


def epoch_of(response: Message) -> int | None:
    """Return the epoch that a response names, None where it names none."""
    match response:
        case VoteResponse() | BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            epochs = [one.leader_epoch for topic in response.topics for one in topic.partitions]
        case FetchResponse():
            epochs = [
                one.current_leader.leader_epoch
                for topic in response.responses
                for one in topic.partitions
            ]
        case FetchSnapshotResponse():
            epochs = [
                one.current_leader.leader_epoch
                for topic in response.topics
                for one in topic.partitions
            ]
        case _:
            epochs = []
    return epochs[0] if epochs else None
