"""Metadata transactions that a controller left open: both find the same log and go on alike.

One case is missing: bootstrap records of which metadata.version was written and the end was not.
Real Kafka 4.3.1 aborts them, believes that it has a level all the same, and its process ends with
"Unknown metadata version"; ours writes them again, which test_activation shows.
"""

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import pytest
from tests.interop.differential.harness import Pair, names_of
from tests.interop.differential.metadata_log import LogTail
from tests.interop.differential.script import Script, Step, started
from tests.support.kafka.java import Java

from kvorum.metadata.record_frame import encode_record
from kvorum.storage.files import RealFileSystem
from kvorum.storage.metadata_log.metadata_log import MetadataLog
from kvorum.wire.json_form import Json
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.primitives import Message
from kvorum.wire.records.metadata_batches import build_data_batch

EPOCH: Final = 1
BROKER: Final = 4
LEVEL: Final = FeatureLevelRecord(name="metadata.version", feature_level=30)
TRANSACTIONS_LEVEL: Final = FeatureLevelRecord(name="transaction.version", feature_level=2)
CONFIG: Final = ConfigRecord(
    resource_type=BROKER, resource_name="", name="log.retention.ms", value="5"
)
BOOTSTRAP: Final = (
    BeginTransactionRecord(name="Bootstrap records"),
    LEVEL,
    TRANSACTIONS_LEVEL,
    EndTransactionRecord(),
)
CASES: Final[dict[str, tuple[tuple[Message, ...], ...]]] = {
    "bootstrap just begun": (BOOTSTRAP[:1],),
    "a transaction open over two batches": (
        BOOTSTRAP,
        (BeginTransactionRecord(name=None), CONFIG),
        (TRANSACTIONS_LEVEL,),
    ),
    "a transaction aborted": (
        BOOTSTRAP,
        (BeginTransactionRecord(name="x"), CONFIG, AbortTransactionRecord(reason="x")),
    ),
}

pytestmark = pytest.mark.timeout(300)


def write_log(data: Path, batches: Sequence[Sequence[Message]]) -> None:
    """Put batches of records into the metadata log of a formatted directory."""
    directory = data / "__cluster_metadata-0"
    log = MetadataLog.open(directory, files=RealFileSystem(), now_ms=0).local_log
    for batch in batches:
        values = [encode_record(record, 0) for record in batch]
        # Real Kafka begins a new segment behind records that are a week old.
        now_ms = int(time.time() * 1000)
        log.append(
            build_data_batch(
                values, base_offset=log.log_end_offset, epoch=EPOCH, timestamp_ms=now_ms
            )
        )
    log.flush()
    log.close()


def whole_log(pair: Pair) -> list[list[Json]]:
    """The records of both logs, without what each says of itself."""
    return [
        [
            record
            for record in names_of(side, set()).records(
                "", LogTail(side.node.data).read(), is_placed=False
            )
            if record["type"] != "RegisterControllerRecord"
        ]
        for side in pair.sides
    ]


def describing(name: str) -> Step:
    """The question what is set for all brokers."""
    resource = {"resourceType": BROKER, "resourceName": name, "configurationKeys": None}
    return Step("DescribeConfigs", 4, {"resources": [resource]})


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_what_is_open_is_aborted_and_bootstrap_records_come_again(
    java: Java, tmp_path: Path, case: str
) -> None:
    with Pair(java, tmp_path, prepare=partial(write_log, batches=CASES[case])) as pair:
        real, ours = whole_log(pair)
        assert real == ours
        given = sum(map(len, CASES[case]))
        assert ("aborted" in case) == (len(real) == given)
        after = Script(case, 0, (describing(""), *started(1), describing("")))
        outcome = pair.run(after)
        assert not outcome.findings, outcome.report()
