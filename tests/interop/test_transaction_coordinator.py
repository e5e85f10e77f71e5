"""A transaction coordinator beside a real one: equal answers, records and partitions."""

import os
from collections import Counter
from itertools import zip_longest
from random import Random
from typing import Any, Final

import pytest
from tests.interop.coordinated_nodes import SETTINGS, batches, prepare
from tests.interop.transaction_script import PARTITIONS, TOPIC, Answer, Script, Side
from tests.support.node import BothNodes
from tests.support.raw_client import RawClient

from kvorum.internal_topics.coordinator_records import TRANSACTION_STATE

STEPS: Final = int(os.environ.get("KVORUM_TRANSACTION_STEPS", "1500"))
SEED: Final = int(os.environ.get("KVORUM_TRANSACTION_SEED", "1"))
COMPLETE: Final = (4, 5)
"""The numbers of the states after a transaction's end."""


def transaction_log(side: Side) -> Answer:
    """Return the records of the coordinator, with what depends on the broker replaced."""
    found = batches(side.client, TRANSACTION_STATE.name, 0)
    assert not isinstance(found, int)
    return [
        (
            *(batch.base_offset, batch.base_sequence, batch.producer_id, batch.is_transactional),
            [_record(side, one.key, one.value) for one in batch.records()],
        )
        for batch in found
    ]


def _record(side: Side, key: bytes | None, value: bytes | None) -> Answer:
    assert key is not None
    shown = TRANSACTION_STATE.decode_key(key).fields
    if value is None:
        return shown, None
    version, fields = TRANSACTION_STATE.decode_value(0, value)
    for name in ("producerId", "previousProducerId", "nextProducerId"):
        if name in fields:
            fields[name] = side.number(fields[name])
    started = fields.pop("transactionStartTimestampMs")
    updated = fields.pop("transactionLastUpdateTimestampMs")
    if fields["transactionPartitions"] is not None:
        fields["transactionPartitions"] = sorted(
            (topic["topic"], sorted(topic["partitionIds"]))
            for topic in fields["transactionPartitions"]
        )
    # An abort without partitions may be complete within the millisecond in which it begins.
    is_complete = fields["transactionStatus"] in COMPLETE
    return shown, version, fields, started > 0, is_complete or started == updated


def topic_log(side: Side, topic: str, partition: int) -> Answer:
    found = batches(side.client, topic, partition)
    assert not isinstance(found, int)
    return [
        (
            *(batch.base_offset, side.number(batch.producer_id), batch.producer_epoch),
            *(batch.base_sequence, batch.is_transactional, batch.is_control),
            [record.key for record in batch.records()],
        )
        for batch in found
    ]


def looks(side: Side) -> Answer:
    """Return all that the steps have left behind."""
    data = [topic_log(side, TOPIC, partition) for partition in range(PARTITIONS)]
    return transaction_log(side), *data, topic_log(side, "__consumer_offsets", 0)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("transaction_version", [2, 1, 0])
def test_the_same_requests_have_the_same_answers(
    both_nodes: BothNodes, transaction_version: int
) -> None:
    seen: Counter[tuple[str, Any]] = Counter()
    with both_nodes(SETTINGS) as (theirs, ours):
        for node in (theirs, ours):
            prepare(node, transaction_version)
        with RawClient(theirs.address) as judge, RawClient(ours.address) as client:
            sides = Side(judge), Side(client)
            script = Script(Random(SEED), has_flexible_records=transaction_version > 0)
            differing: list[str] = []
            for number, (text, step) in enumerate(script.steps(STEPS)):
                expected, found = map(step, sides)
                if found != expected:
                    differing.append(f"step {number}: {text}\n  ours {found}\n  real {expected}")
                for side in sides:
                    side.settle()
                seen[text.split(maxsplit=1)[0], str(expected)[:8]] += 1
            assert not differing, f"{len(differing)} of seed {SEED}\n" + "\n".join(differing[:20])
            for expected, found in zip(looks(sides[0]), looks(sides[1]), strict=True):
                differing += [
                    f"ours {one}\n  real {other}"
                    for one, other in zip_longest(found, expected)
                    if one != other
                ]
            assert not differing, f"{len(differing)} in the logs\n" + "\n".join(differing[:10])
