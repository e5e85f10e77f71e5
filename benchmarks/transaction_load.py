"""The load of a coordinator of transactions, by its first answer after a start."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.data.asking import Connection, until_coordinated
from benchmarks.node_start import (
    START_SECONDS_MAX,
    Candidate,
    ConfiguredNode,
    configured,
    kafka_nodes,
    kvorum_node,
    running,
    wait_for_first_answer,
)
from benchmarks.report import Row
from benchmarks.transactions import SETTINGS, TransactionalProducer

from kvorum.transactions.transaction_log import transaction_record
from kvorum.transactions.transaction_metadata import TransactionMetadata, TransactionPartition
from kvorum.transactions.transaction_state import TransactionState
from kvorum.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from kvorum.wire.records import BatchOptions, RecordData, build_batch, read_batches

RECORDS: Final = 1_000_000
IDS: Final = 10_000
STEPS: Final = (
    TransactionState.ONGOING,
    TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_COMMIT,
)
"""The records of a transaction in one partition."""
WITH_EPOCHS: Final = 2
ONE_PARTITION: Final = {**SETTINGS, "transaction.state.log.num.partitions": "1"}
FIRST_ID: Final = "first"
ROUNDS: Final = 3
CLEAN_SHUTDOWN: Final = "data/.kafka_cleanshutdown"
LOG: Final = "data/__transaction_state-0/00000000000000000000.log"


def rows(divisor: int) -> list[Row]:
    """Return the row of the report; the number of records is divided."""
    count = RECORDS // divisor
    ours, peer = kvorum_node(), kafka_nodes()[0]
    loads_s = [(_load_s(ours, count), _load_s(peer, count)) for _ in range(ROUNDS)]
    mine, theirs = (statistics.median(each) for each in zip(*loads_s, strict=True))
    return [Row(f"load of {count:,} records of transactions", peer.name, mine, theirs, "s")]


def _load_s(candidate: Candidate, count: int) -> float:
    """Return how much later a coordinator answers after a start with the records in its log."""
    with tempfile.TemporaryDirectory() as name:
        node = configured(candidate, Path(name), ONE_PARTITION)
        subprocess.run(node.format_command, check=True, capture_output=True)
        with running(node.run_command):
            _wait_for_topic(node)
            asyncio.run(TransactionalProducer.begin(str(node.address), FIRST_ID))
        before_s = _answered_s(node)
        _append(Path(name) / LOG, count)
        # The node does not trust what it has not written itself: the first start recovers it.
        (Path(name) / CLEAN_SHUTDOWN).unlink()
        _answered_s(node)
        return max(_answered_s(node) - before_s, 0.001)


def _answered_s(node: ConfiguredNode) -> float:
    began = time.perf_counter()
    with running(node.run_command):
        _wait_for_topic(node)
        asyncio.run(_until_described(str(node.address)))
        return time.perf_counter() - began


def _wait_for_topic(node: ConfiguredNode) -> None:
    wait_for_first_answer(node.address, deadline_seconds=time.perf_counter() + START_SECONDS_MAX)


async def _until_described(servers: str) -> None:
    connection = await Connection.to(servers)

    async def ask() -> int:
        request = DescribeTransactionsRequest([FIRST_ID])
        answered = await connection.ask(request, DescribeTransactionsResponse, 0)
        return answered.transaction_states[0].error_code

    await until_coordinated(ask)
    connection.close()


def _append(log: Path, count: int) -> None:
    """Append records to the log of a node that was stopped in good order."""
    known = list(read_batches(log.read_bytes()))
    first = known[-1].next_offset
    with log.open("ab") as file:
        for number, metadata in enumerate(_states(count)):
            record = transaction_record(metadata, WITH_EPOCHS)
            data = RecordData(record.value_bytes(), record.key_bytes(), metadata.last_update_ms)
            options = BatchOptions(base_offset=first + number, partition_leader_epoch=0)
            file.write(build_batch([data], options))


def _states(count: int) -> Iterator[TransactionMetadata]:
    now_ms = time.time_ns() // 1_000_000
    for number in range(count):
        transaction, step = divmod(number, len(STEPS))
        state = STEPS[step]
        is_over = state is TransactionState.COMPLETE_COMMIT
        added = () if is_over else (TransactionPartition("orders", 0),)
        yield TransactionMetadata(
            transactional_id=f"producer-{transaction % IDS}",
            producer_id=transaction % IDS,
            producer_epoch=transaction // IDS,
            timeout_ms=60_000,
            state=state,
            partitions=frozenset(added),
            start_ms=now_ms,
            last_update_ms=now_ms,
            client_version=WITH_EPOCHS,
        )
