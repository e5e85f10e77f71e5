"""Ways to fold one log that must all come to the same image."""

from collections.abc import Iterator, Sequence
from random import Random

from tests.support.partitions.actions import Step
from tests.support.partitions.space import World

from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.primitives import Message

Numbered = tuple[Message, int, int]


def numbered(records: Sequence[RecordAndVersion], first_offset: int) -> list[Numbered]:
    return [
        (message, version, first_offset + index) for index, (message, version) in enumerate(records)
    ]


def decoded(record: RecordAndVersion) -> RecordAndVersion:
    """The record as it comes out of the log."""
    message, version = record
    return type(message).decode(message.encode(version), version), version


def through_snapshot(image: MetadataImage) -> MetadataImage:
    records = [decoded(record) for record in image_records(image)]
    return MetadataImage().apply_all(
        (message, version, image.last_offset) for message, version in records
    )


def differing_folds(before: World, step: Step, after: World) -> Iterator[str]:
    """Yield how one step can be folded so that something else comes out."""
    offset = before.next_offset
    records = [decoded(record) for record in step.records]
    whole = before.image.apply_all(numbered(records, offset))
    if whole != after.image:
        yield "records in one batch are the records one by one"
    # The remains of the ELR are not written while it is off.
    if before.image.features.is_elr_enabled or not before.partition.elr:
        loaded = through_snapshot(before.image)
        if loaded != before.image:
            yield "a snapshot is the image"
        elif loaded.apply_all(numbered(records, offset)) != after.image:
            yield "records after a snapshot are the records after the log"
    yield from _differing_transactions(before, records, after)


def _differing_transactions(
    before: World, records: list[RecordAndVersion], after: World
) -> Iterator[str]:
    begin, offset = (BeginTransactionRecord(name="t"), 0), before.next_offset
    opened = before.image.apply_all(numbered([begin, *records], offset))
    if opened.published != before.image:
        yield "nothing of an open transaction is published"
    end_offset = offset + len(records) + 1
    aborted = opened.apply(AbortTransactionRecord(reason="r"), 0, end_offset)
    if not _is_same_state(aborted, before.image):
        yield "an aborted transaction changes nothing"
    ended = opened.apply(EndTransactionRecord(), 0, end_offset)
    if ended.topics != after.image.topics or ended.configs != after.image.configs:
        yield "a transaction that ends is its records"


def _is_same_state(image: MetadataImage, other: MetadataImage) -> bool:
    return (
        image.topics == other.topics
        and image.cluster == other.cluster
        and image.configs == other.configs
        and image.features == other.features
        and image.transaction is None
    )


def in_groups(records: Sequence[Numbered], random: Random) -> Iterator[list[Numbered]]:
    """Yield all of `records` in groups of any size."""
    start = 0
    while start < len(records):
        size = random.randint(1, 12)
        yield list(records[start : start + size])
        start += size
