"""The views of transactional ids: DescribeTransactions and ListTransactions."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from kvorum.metadata.api import RequestError
from kvorum.transactions.transaction_metadata import TransactionMetadata
from kvorum.transactions.transaction_state import STATES_BY_WIRE_NAME, TransactionState
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_transactions import DescribeTransactionsResponse
from kvorum.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse

NO_DURATION: Final = -1


class Pattern(Protocol):
    """A compiled regular expression."""

    def fullmatch(self, text: str, /) -> Any | None:
        """Return whether the whole text matches: None if not."""
        ...


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """The transactions that a client wants to see; an empty set or None means all."""

    states: frozenset[TransactionState]
    producer_ids: frozenset[int]
    duration_ms: int
    """The least age of an open transaction; -1 for any."""
    pattern: Pattern | None
    is_unsatisfiable: bool
    """Whether states were named, and none of them exists."""

    @classmethod
    def of(cls, request: ListTransactionsRequest, pattern: Pattern | None) -> "TransactionFilter":
        """Return what a request asks for, with its pattern compiled."""
        states = frozenset(
            STATES_BY_WIRE_NAME[name]
            for name in request.state_filters
            if name in STATES_BY_WIRE_NAME
        )
        return cls(
            states,
            frozenset(request.producer_id_filters),
            request.duration_filter,
            pattern,
            is_unsatisfiable=bool(request.state_filters) and not states,
        )

    def admits(self, metadata: TransactionMetadata, now_ms: int) -> bool:
        """Return whether an id is among those that are wanted."""
        if self.is_unsatisfiable or (self.states and metadata.state not in self.states):
            return False
        if self.producer_ids and metadata.producer_id not in self.producer_ids:
            return False
        if self.duration_ms > NO_DURATION and now_ms - metadata.start_ms <= self.duration_ms:
            return False
        return self.pattern is None or self.pattern.fullmatch(metadata.transactional_id) is not None


def listed(metadata: TransactionMetadata) -> ListTransactionsResponse.TransactionState:
    """Return an id as ListTransactions has it."""
    return ListTransactionsResponse.TransactionState(
        transactional_id=metadata.transactional_id,
        producer_id=metadata.producer_id,
        transaction_state=metadata.state.wire_name,
    )


def described(
    transactional_id: str, metadata: TransactionMetadata | None
) -> DescribeTransactionsResponse.TransactionState:
    """Return an id as DescribeTransactions has it; raises RequestError for one that is unknown."""
    if metadata is None:
        raise RequestError.with_default_message(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return DescribeTransactionsResponse.TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.wire_name,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[
            DescribeTransactionsResponse.TopicData(topic, indexes)
            for topic, indexes in metadata.indexes_by_topic.items()
        ],
    )
