"""A known flaw of transaction.version 1 (KIP-890), and its end with version 2.

A producer's EndTxn is held up in the network; its client has sent it again, and has begun the next
transaction, when it arrives. With one epoch for all transactions it ends the wrong one: what is
aborted afterwards has been read. The history of the clients shows it on a real broker.
"""

from pathlib import Path
from typing import Final

import pytest
from tests.interop.coordinated_nodes import SETTINGS, batches, prepare
from tests.interop.raw_producer import RawProducer
from tests.interop.transaction_script import IDS, TOPIC
from tests.interop.written_history import WrittenHistory
from tests.support.node import BothNodes, Node
from tests.support.raw_client import RawClient

from kvorum.client_histories.anomalies import Anomaly, Settings
from kvorum.client_histories.check import check_history
from kvorum.client_histories.reader import read_history
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.records import ControlRecordType, decode_control_record

ID: Final = IDS[0]
PARTITION: Final = 0
FIRST, SECOND = 1, 2
"""The values of the two transactions."""


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
        leaders = {PARTITION: node.address}
        producer = RawProducer(ID, TOPIC, transaction_version, node.address, leaders)
        with history.transaction(process, [(PARTITION, FIRST)]) as first:
            offset = producer.send(PARTITION, FIRST)
            late = producer.end_request(is_commit=True)
            assert producer.end(late) == ErrorCode.NONE
            first.sent({(PARTITION, FIRST): offset})
        with history.transaction(process, [(PARTITION, SECOND)]) as second:
            producer.send(PARTITION, SECOND)
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
