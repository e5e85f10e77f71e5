"""The acknowledgement of acquired records by their member (Kafka's SharePartition.acknowledge)."""

from collections.abc import Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.broker.share_partition.in_flight_batch import InFlightBatch, RecordRun
from kvorum.broker.share_partition.in_flight_records import InFlightRecords
from kvorum.broker.share_partition.in_flight_state import NO_MEMBER, InFlightState
from kvorum.broker.share_partition.record_state import RecordState
from kvorum.broker.share_partition.settings import SharePartitionSettings
from kvorum.broker.share_partition.transitions import Transitions
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.wire.error_codes import ErrorCode


class AcknowledgeType(IntEnum):
    """A member's answer for a record, by the number in requests."""

    GAP = 0
    """There is no such record in the log."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATES: Final = MappingProxyType(
    {
        AcknowledgeType.GAP: RecordState.ARCHIVED,
        AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
        AcknowledgeType.RELEASE: RecordState.AVAILABLE,
        AcknowledgeType.REJECT: RecordState.ARCHIVED,
    }
)


class ShareAcknowledgementBatch(NamedTuple):
    """The records from one offset to another, with one type for all, or one for each."""

    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]


class Acknowledgement:
    """One acknowledgement of a member; its transitions are gathered, also if it is refused."""

    def __init__(
        self,
        records: InFlightRecords,
        settings: SharePartitionSettings,
        member_id: str,
        now_ms: float,
    ) -> None:
        self._records = records
        self._settings = settings
        self._member_id = member_id
        self._deadline_ms = now_ms + settings.record_lock_duration_ms
        self.transitions = Transitions(records, settings)

    def acknowledge(self, batch: ShareAcknowledgementBatch) -> None:
        """Begin the transitions of a batch; raises RequestError."""
        types = _acknowledge_types(batch)
        if batch.last_offset < self._records.start_offset:
            return
        for in_flight in self._in_flight(batch):
            if in_flight.last_offset < self._records.start_offset:
                continue
            if in_flight.offset_states is None:
                self._check_owner(in_flight.state)
            is_whole = (
                in_flight.offset_states is None
                and len(types) == 1
                and in_flight.is_within(batch.first_offset, batch.last_offset)
                and in_flight.first_offset >= self._records.start_offset
            )
            if is_whole:
                run = RecordRun(in_flight.first_offset, in_flight.last_offset, in_flight.state)
                self._move(in_flight, run, types[0])
            else:
                in_flight.split(self._records.locks)
                self._acknowledge_offsets(in_flight, batch, types)

    def _in_flight(self, batch: ShareAcknowledgementBatch) -> list[InFlightBatch]:
        """Return the batches in flight with the offsets of a batch; raises RequestError."""
        records = self._records
        floor = records.batches.floor(batch.first_offset)
        if floor is None and records.has_start_within(batch.first_offset, batch.last_offset):
            floor = records.batches.floor(records.start_offset)
        if floor is None:
            raise _invalid_record_state(
                "Batch record not found. The request batch offsets are not found in the cache."
            )
        found = records.batches.begun_between(floor.first_offset, batch.last_offset)
        last_offset = found[-1].last_offset
        if last_offset < batch.first_offset:
            raise invalid_request(
                "Batch record not found. The first offset in request is past acquired records."
            )
        if batch.last_offset > last_offset:
            raise invalid_request(
                "Batch record not found. The last offset in request is past acquired records."
            )
        return found

    def _check_owner(self, state: InFlightState) -> None:
        """Raise RequestError unless the member has the records of a whole batch."""
        if state.member_id == NO_MEMBER:
            raise _invalid_record_state(
                "The batch cannot be acknowledged. The batch is not in the acquired state."
            )
        if state.member_id != self._member_id:
            raise _invalid_record_state("Member is not the owner of batch record")

    def _acknowledge_offsets(
        self,
        in_flight: InFlightBatch,
        batch: ShareAcknowledgementBatch,
        types: Sequence[AcknowledgeType],
    ) -> None:
        first_offset = max(batch.first_offset, self._records.start_offset)
        for offset, state in in_flight.states_between(first_offset, batch.last_offset):
            if state.state is not RecordState.ACQUIRED:
                raise _invalid_record_state(
                    "The offset cannot be acknowledged. The offset is not acquired."
                )
            if state.member_id != self._member_id:
                raise _invalid_record_state("Member is not the owner of offset")
            kind = types[0] if len(types) == 1 else types[offset - batch.first_offset]
            self._move(in_flight, RecordRun(offset, offset, state), kind)

    def _move(self, batch: InFlightBatch, run: RecordRun, kind: AcknowledgeType) -> None:
        """Begin the transition of acquired records, or renew their lock."""
        if kind is AcknowledgeType.RENEW:
            self._renew(run)
            return
        to = _STATES[kind]
        if kind is AcknowledgeType.REJECT and self._settings.is_dead_letter_queue_enabled:
            to = RecordState.ARCHIVING
        self.transitions.begin(batch, run, to)

    def _renew(self, run: RecordRun) -> None:
        if not self._settings.is_renew_acknowledge_enabled:
            raise _invalid_record_state("Renewing acquisition locks is not enabled for the group.")
        begin_lock = self._records.locks.begin
        run.state.renew(
            begin_lock(run.first_offset, run.last_offset, deadline_ms=self._deadline_ms)
        )


def _acknowledge_types(batch: ShareAcknowledgementBatch) -> list[AcknowledgeType]:
    try:
        return [AcknowledgeType(one) for one in batch.acknowledge_types]
    except ValueError as unknown:
        raise invalid_request(
            f"Invalid acknowledge type: {list(batch.acknowledge_types)}"
        ) from unknown


def _invalid_record_state(message: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_RECORD_STATE, message)
