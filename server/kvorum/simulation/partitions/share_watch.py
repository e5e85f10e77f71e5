"""Checks of what a simulated broker does for a share group: as leader, and as share coordinator."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

from kvorum.broker.share_partition.acknowledgement import AcknowledgeType
from kvorum.broker.share_session.session import FINAL_EPOCH
from kvorum.metadata.features import SHARE_VERSION_FEATURE
from kvorum.node.broker.share_fetch.led_share_partition import LedSharePartition
from kvorum.node.broker.share_fetch.share_partition_manager import SharePartitionManager
from kvorum.node.broker.this_broker import ThisBroker
from kvorum.node.serving.request_metrics import count_errors
from kvorum.simulation.partitions import promises
from kvorum.simulation.partitions.answer_check import Check
from kvorum.simulation.partitions.settings import TOPIC_ID
from kvorum.simulation.partitions.share_group_ledger import Asked, ShareGroupLedger, Term
from kvorum.simulation.properties.catalogue import Checks
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest
from kvorum.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from kvorum.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from kvorum.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from kvorum.wire.messages.write_share_group_state import WriteShareGroupStateRequest
from kvorum.wire.primitives import Message

_KNOWN_OF_GROUPS: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)
"""The codes that members of share groups know of a group coordinator."""
_KNOWN_OF_LEADERS: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        ErrorCode.INVALID_SHARE_SESSION_EPOCH,
        ErrorCode.INVALID_RECORD_STATE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""The codes that they know of the leaders of partitions."""


class _Said(NamedTuple):
    """A member's word for a record."""

    partition: int
    offset: int
    kind: AcknowledgeType


class _Led(NamedTuple):
    """A share partition that the process leads, and how many of its place there were before."""

    led: LedSharePartition
    number: int


class ShareWatch:
    """The share partitions of one process, as they were when they were last looked at."""

    def __init__(
        self,
        ledger: ShareGroupLedger,
        manager: SharePartitionManager,
        broker: ThisBroker,
        checks: Checks,
        *,
        incarnation: int,
    ) -> None:
        self._ledger = ledger
        self._manager = manager
        self._broker = broker
        self._checks = checks
        self._incarnation = incarnation
        self._led: dict[int, _Led] = {}

    def look(self) -> None:
        """Take note of share partitions that have taken the place of others."""
        for led in self._manager.partitions:
            known = self._led.get(led.key.partition)
            if known is None or known.led is not led:
                number = 0 if known is None else known.number + 1
                self._led[led.key.partition] = _Led(led, number)

    def on_request(self, request: Message) -> Check | None:
        """Take note of a request; return the check of its answer, None for another kind."""
        match request:
            case ShareFetchRequest() | ShareAcknowledgeRequest():
                return self._on_member(request)
            case ShareGroupHeartbeatRequest():
                return partial(self._demand_known, _KNOWN_OF_GROUPS)
            case InitializeShareGroupStateRequest():
                for begun in request.topics:
                    for partition in begun.partitions:
                        self._ledger.on_initialize(partition.partition)
            case WriteShareGroupStateRequest():
                for topic in request.topics:
                    for write in topic.partitions:
                        self._ledger.on_write(write.partition, write)
            case _:
                pass
        return None

    def _on_member(self, request: ShareFetchRequest | ShareAcknowledgeRequest) -> Check:
        assert request.member_id is not None
        asked = self._ledger.ask(request.member_id, self._now_ms())
        said = list(_said(request))
        for one in said:
            self._ledger.say(asked.member_id, *one)
        if request.share_session_epoch == FINAL_EPOCH:
            self._ledger.let_go(asked.member_id)
        self.look()
        expected = self._expected()

        def check(answer: Message) -> None:
            self._demand_known(_KNOWN_OF_LEADERS, answer)
            self.look()
            self._check(answer, asked, said, expected)

        return check

    def _now_ms(self) -> float:
        return self._broker.runtime.monotonic_ms()

    def _demand_known(self, known: frozenset[ErrorCode], answer: Message) -> None:
        """Check the codes of an answer, by a broker that may not know of share groups yet."""
        image = self._broker.image()
        is_behind = TOPIC_ID not in image.topics.by_id
        is_behind |= image.features.level(SHARE_VERSION_FEATURE) == 0
        codes = set(count_errors(answer))
        is_known = is_behind or codes <= known
        self._checks.demand(promises.ANSWERS_KNOWN, f"{answer}", holds=is_known)

    def _check(
        self, answer: Message, asked: Asked, said: Iterable[_Said], expected: dict[int, int]
    ) -> None:
        """Check what a member is answered, as far as one share partition can have said it."""
        assert isinstance(answer, ShareFetchResponse | ShareAcknowledgeResponse)
        if answer.error_code != ErrorCode.NONE:
            return
        written = _written_partitions(answer)
        for one in said:
            term = self._term(one.partition, expected)
            if one.partition in written and term is not None:
                self._ledger.on_written(asked, term, *one)
        if isinstance(answer, ShareAcknowledgeResponse):
            return
        now_ms = self._now_ms()
        for data in (one for topic in answer.responses for one in topic.partitions):
            index = data.partition_index
            term = self._term(index, expected)
            if term is None:
                continue
            for batch in data.acquired_records:
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    self._ledger.on_acquired(
                        asked, term, index, offset, batch.delivery_count, now_ms
                    )

    def _expected(self) -> dict[int, int]:
        """Return the number that the next term has which decides, by partition."""
        alive = self._manager.partitions
        return {
            index: known.number if known.led in alive else known.number + 1
            for index, known in self._led.items()
        }

    def _term(self, partition: int, expected: dict[int, int]) -> Term | None:
        """Return the only term since a request came; None where there may have been several."""
        present = self._led.get(partition)
        if present is None or present.number != expected.get(partition, 0):
            return None
        return Term(self._broker.id, self._incarnation, present.number, present.led.leader_epoch)


def _said(request: ShareFetchRequest | ShareAcknowledgeRequest) -> Iterator[_Said]:
    """Yield what a member says of each record."""
    for topic in request.topics:
        for partition in topic.partitions:
            for batch in partition.acknowledgement_batches:
                types = batch.acknowledge_types
                for offset in range(batch.first_offset, batch.last_offset + 1):
                    kind = types[0] if len(types) == 1 else types[offset - batch.first_offset]
                    yield _Said(partition.partition_index, offset, AcknowledgeType(kind))


def _written_partitions(answer: ShareFetchResponse | ShareAcknowledgeResponse) -> set[int]:
    """Return the partitions whose acknowledgements a leader has answered to be written."""
    if isinstance(answer, ShareFetchResponse):
        codes = {
            one.partition_index: one.acknowledge_error_code
            for topic in answer.responses
            for one in topic.partitions
        }
    else:
        codes = {
            one.partition_index: one.error_code
            for topic in answer.responses
            for one in topic.partitions
        }
    return {index for index, code in codes.items() if code == ErrorCode.NONE}
