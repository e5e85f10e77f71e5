"""A known flaw of transaction.version 1 (KIP-890), and its end with version 2.

A producer's EndTxn is held up in the network; its client has sent it again, and has begun the next
transaction, when it arrives. With one epoch for all transactions it ends the wrong one: what is
aborted afterwards has been read. The history of the clients shows it on a real broker.
"""

from pathlib import Path
from typing import Final

import pytest
from tests.interop.coordinated_nodes import SETTINGS, batches, prepare
from tests.interop.transaction_script import IDS, TOPIC
from tests.interop.written_history import WrittenHistory
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

from kvorum.client_histories.anomalies import Anomaly, Settings
from kvorum.client_histories.check import check_history
from kvorum.client_histories.reader import read_history
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
from kvorum.wire.records import (
    BatchOptions,
    ControlRecordType,
    RecordData,
    build_batch,
    decode_control_record,
)

ID: Final = IDS[0]
PARTITION: Final = 0
FIRST, SECOND = 1, 2
"""The values of the two transactions."""


class LateProducer:
    """A producer whose requests a test sends one by one, with one epoch or one for each."""

    def __init__(self, client: RawClient, transaction_version: int) -> None:
        self._client = client
        self._has_epochs = transaction_version > 1
        begun = client.ask(InitProducerIdRequest(ID, 60_000), InitProducerIdResponse, 4)
        assert begun.error_code == ErrorCode.NONE
        self._producer = begun.producer_id, begun.producer_epoch
        self._sequence = 0

    def send(self, value: int) -> int:
        """Append a value to the transaction, which begins with it; return its offset."""
        if not self._has_epochs:
            wait_for(lambda: self._add() == ErrorCode.NONE, "the partition is added")
        options = BatchOptions(
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=self._sequence,
            is_transactional=True,
        )
        records = bytes(build_batch([RecordData(f"{value}".encode(), None, 1)], options))
        data = ProduceRequest.PartitionProduceData(PARTITION, records)
        topic = ProduceRequest.TopicProduceData(TOPIC, partition_data=[data])
        request = ProduceRequest(ID, -1, 5_000, [topic])

        def appended() -> int | None:
            version = 12 if self._has_epochs else 11
            (answered,) = self._client.ask(request, ProduceResponse, version).responses
            (one,) = answered.partition_responses
            return None if one.error_code else one.base_offset + 1

        offset = wait_for(appended, "the value is appended") - 1
        self._sequence += 1
        return offset

    def _add(self) -> int:
        topics = [AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(TOPIC, [PARTITION])]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=topics,
        )
        answered = self._client.ask(request, AddPartitionsToTxnResponse, 3)
        (topic,) = answered.results_by_topic_v3_and_below
        return topic.results_by_partition[0].partition_error_code

    def end_request(self, *, is_commit: bool) -> EndTxnRequest:
        """Return what ends the transaction that is open; it may arrive later."""
        return EndTxnRequest(ID, *self._producer, is_commit)

    def end(self, request: EndTxnRequest) -> int:
        """Send an EndTxn, and wait until the transaction has its end; return the code."""
        answered = self._client.ask(request, EndTxnResponse, 5 if self._has_epochs else 4)
        if self._has_epochs and answered.error_code == ErrorCode.NONE:
            self._producer = answered.producer_id, answered.producer_epoch
            self._sequence = 0
        described = DescribeTransactionsRequest([ID])

        def is_over() -> bool:
            found = self._client.ask(described, DescribeTransactionsResponse, 0)
            return not found.transaction_states[0].transaction_state.startswith("Prepare")

        wait_for(is_over, "the markers are written")
        return answered.error_code


def committed(client: RawClient) -> list[tuple[int, int]]:
    """Return offset and value of the committed records, as the markers after them say."""
    found = batches(client, TOPIC, PARTITION)
    assert not isinstance(found, int)
    waiting: list[tuple[int, int]] = []
    read: list[tuple[int, int]] = []
    for batch in found:
        records = list(batch.records())
        if not batch.is_control:
            waiting += [(one.offset, int(one.value or b"0")) for one in records]
            continue
        if decode_control_record(records[0]).type is ControlRecordType.COMMIT:
            read += waiting
        waiting = []
    return read


def play(node: Node, transaction_version: int, file: Path) -> tuple[int, set[Anomaly]]:
    """Let the first EndTxn arrive a second time; return its code, and what the history shows."""
    prepare(node, transaction_version)
    with RawClient(node.address) as client, WrittenHistory(file) as history:
        process = history.new_process()
        producer = LateProducer(client, transaction_version)
        with history.transaction(process, [(PARTITION, FIRST)]) as first:
            offset = producer.send(FIRST)
            late = producer.end_request(is_commit=True)
            assert producer.end(late) == ErrorCode.NONE
            first.sent({(PARTITION, FIRST): offset})
        with history.transaction(process, [(PARTITION, SECOND)]) as second:
            producer.send(SECOND)
            code = producer.end(late)
            reader = history.new_process()
            history.assign(reader, [PARTITION])
            with history.poll(reader) as poll:
                poll.polled({PARTITION: committed(client)})
            # The producer changes its mind: nothing of this may be read.
            producer.end(producer.end_request(is_commit=False))
            second.failed()
    with file.open("rb") as lines:
        report = check_history(read_history(lines), Settings())
    return code, {kind.anomaly for kind in report.counts}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("transaction_version", "code", "anomalies"),
    [(1, ErrorCode.NONE, {Anomaly.G1A}), (2, ErrorCode.PRODUCER_FENCED, set[Anomaly]())],
    ids=["one epoch", "an epoch each"],
)
def test_an_end_that_comes_late_ends_another_transaction_unless_each_has_its_epoch(
    both_nodes: BothNodes,
    tmp_path: Path,
    transaction_version: int,
    code: ErrorCode,
    anomalies: set[Anomaly],
) -> None:
    with both_nodes(SETTINGS) as nodes:
        for number, node in enumerate(nodes):
            file = tmp_path / f"history-{number}.jsonl"
            assert play(node, transaction_version, file) == (code, anomalies), node.kind
