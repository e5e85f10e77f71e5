"""A transactional producer whose requests a test sends one by one."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kvorum.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kvorum.wire.messages.produce import ProduceRequest, ProduceResponse
from kvorum.wire.records import BatchOptions, RecordData, build_batch

TIMEOUT_MS: Final = 600_000
"""The time-out of a transaction: longer than any test."""


@dataclass
class RawProducer:
    """A producer of whole numbers, with one epoch for all transactions or, from 2 on, one for each.

    `leaders` has the address of each partition's leader.
    """

    transactional_id: str
    topic: str
    transaction_version: int
    coordinator: str
    leaders: Mapping[int, str]
    _sequences: Counter[int] = field(default_factory=Counter[int])

    def __post_init__(self) -> None:
        self._has_epochs = self.transaction_version > 1
        request = InitProducerIdRequest(self.transactional_id, TIMEOUT_MS)

        def given() -> tuple[int, int] | None:
            with RawClient(self.coordinator) as client:
                answered = client.ask(request, InitProducerIdResponse, 4)
            is_given = answered.error_code == ErrorCode.NONE
            return (answered.producer_id, answered.producer_epoch) if is_given else None

        self._producer = wait_for(given, "the coordinator gives a producer id")

    def send(self, partition: int, value: int) -> int:
        """Append a value to the transaction, which begins with the first; return its offset."""
        if not self._has_epochs:
            wait_for(lambda: self._add(partition) == ErrorCode.NONE, "the partition is added")
        options = BatchOptions(
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequences[partition],
            is_transactional=True,
        )
        records = bytes(build_batch([RecordData(f"{value}".encode(), None, 1)], options))
        data = ProduceRequest.PartitionProduceData(partition, records)
        topic = ProduceRequest.TopicProduceData(self.topic, partition_data=[data])
        request = ProduceRequest(self.transactional_id, -1, 5_000, [topic])

        def appended() -> int | None:
            with RawClient(self.leaders[partition]) as client:
                answered = client.ask(request, ProduceResponse, 12 if self._has_epochs else 11)
            (one,) = answered.responses[0].partition_responses
            return None if one.error_code else one.base_offset + 1

        offset = wait_for(appended, "the value is appended") - 1
        self._sequences[partition] += 1
        return offset

    def _add(self, partition: int) -> int:
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(self.topic, [partition])]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        with RawClient(self.coordinator) as client:
            answered = client.ask(request, AddPartitionsToTxnResponse, 3)
        (topic,) = answered.results_by_topic_v3_and_below
        return topic.results_by_partition[0].partition_error_code

    def end_request(self, *, is_commit: bool) -> EndTxnRequest:
        """Return what ends the transaction that is open; it may arrive later."""
        return EndTxnRequest(self.transactional_id, *self._producer, is_commit)

    def decide(self, request: EndTxnRequest) -> int:
        """Send an EndTxn; return the code."""
        with RawClient(self.coordinator) as client:
            answered = client.ask(request, EndTxnResponse, 5 if self._has_epochs else 4)
        if self._has_epochs and answered.error_code == ErrorCode.NONE:
            self._producer = answered.producer_id, answered.producer_epoch
            self._sequences.clear()
        return answered.error_code

    def end(self, request: EndTxnRequest) -> int:
        """Send an EndTxn, and wait until the transaction has its end; return the code."""
        code = self.decide(request)
        self.wait_for_end()
        return code

    def wait_for_end(self) -> None:
        """Wait until a transaction that was decided has its end."""
        wait_for(lambda: not self._state().startswith("Prepare"), "the markers are written")

    def _state(self) -> str:
        described = DescribeTransactionsRequest([self.transactional_id])
        with RawClient(self.coordinator) as client:
            found = client.ask(described, DescribeTransactionsResponse, 0)
        return found.transaction_states[0].transaction_state
