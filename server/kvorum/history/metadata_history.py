"""The fold of one cluster's metadata log into rows of history.

    history = MetadataHistory()
    for record in records:              # in the order of the log
        for row in history.add(record):  # rows of what ended or happened at this record
            ...
    history.open_rows()                 # what is still going on
    history.end_state()                 # the cluster as of the last record

The state is one image of `kvorum.metadata`, folded by its own replay, with the begins of the
intervals that are open: memory depends on the size of the cluster, not on the length of the log.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final

from immutables import Map

from kvorum.history.cluster_history import ClusterHistory
from kvorum.history.columns import VoterColumn
from kvorum.history.errors import ContradictionError, MissingOffsetsError, SavedHistoryError
from kvorum.history.intervals import LogRecord, Position, log_end
from kvorum.history.quorum_history import QuorumHistory
from kvorum.history.tables import (
    BrokerRow,
    ConfigRow,
    FeatureRow,
    HistoryRow,
    PartitionRow,
    QuotaRow,
    StateRow,
    TopicRow,
)
from kvorum.history.value_changes import parts_of
from kvorum.history.value_columns import (
    acl_row,
    endpoint_columns,
    entity_columns,
    feature_columns,
    is_sensitive,
    log_dir_texts,
    state_of,
)
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.errors import MetadataError
from kvorum.metadata.features import ELR_VERSION_FEATURE, FeaturesImage
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.image_records import image_records
from kvorum.metadata.metadata_version import LATEST_PRODUCTION_METADATA_VERSION, MetadataVersion
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.record_frame import decode_record, encode_record
from kvorum.metadata.replay import ImageEditor, fold_record
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.messages.leader_change_message import LeaderChangeMessage
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.snapshot_header_record import SnapshotHeaderRecord
from kvorum.wire.uuid_text import uuid_to_text

MAGIC: Final = b"kvorum-history-1\n"
"""The name and the number of the format. Another format has another number."""

_LENGTH: Final = struct.Struct(">I")
"""The length of a record, before it."""
_EVERYTHING: Final = FeaturesImage(
    LATEST_PRODUCTION_METADATA_VERSION, Map({ELR_VERSION_FEATURE: 1})
)
"""The features at which no record of the image is left out."""

RECORDS_PER_IMAGE: Final = 16_384
"""The number of records after which the editor's changes become an image. That bounds what the
editor collects, and is rare enough to cost little for each record."""

_NOTHING_READ: Final = Position(offset=-1, epoch=-1, timestamp_ms=-1)


def end_state(image: MetadataImage, voters: tuple[VoterColumn, ...]) -> Iterator[StateRow]:
    """Yield the rows of all tables of the state, table by table, each in order of its key."""
    topics = image.topics.sorted_topics()
    for topic in topics:
        yield TopicRow(topic.name, uuid_to_text(topic.id), len(topic.partitions))
    for topic in topics:
        for index, partition in topic.sorted_partitions():
            yield _partition_row(topic, index, partition)
    yield from _brokers(image)
    yield from _configs(image)
    for entry_id in sorted(image.acls.entries):
        yield acl_row(entry_id, image.acls.entries[entry_id])
    yield from _quotas(image)
    yield from (FeatureRow(name, level) for name, level in image.features.all_levels().items())
    yield from voters


def _partition_row(topic: TopicImage, index: int, partition: PartitionRegistration) -> PartitionRow:
    return PartitionRow(
        topic_name=topic.name,
        topic_id=uuid_to_text(topic.id),
        partition_id=index,
        replicas=partition.replicas,
        isr=partition.isr,
        removing_replicas=partition.removing_replicas,
        adding_replicas=partition.adding_replicas,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        leader_recovery_state=partition.leader_recovery_state,
        directories=log_dir_texts(partition.directories),
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
    )


def _brokers(image: MetadataImage) -> Iterator[BrokerRow]:
    for broker in image.cluster.sorted_brokers():
        cordoned = broker.cordoned_directories
        yield BrokerRow(
            broker_id=broker.id,
            incarnation_id=uuid_to_text(broker.incarnation_id),
            broker_epoch=broker.epoch,
            state=state_of(broker),
            rack=broker.rack,
            endpoints=endpoint_columns(broker.listeners),
            log_dirs=log_dir_texts(broker.directories),
            cordoned_log_dirs=None if cordoned is None else log_dir_texts(cordoned),
            features=feature_columns(broker.supported_features),
        )


def _configs(image: MetadataImage) -> Iterator[ConfigRow]:
    for kind, resource_name in sorted(image.configs.resources):
        for name, value in sorted(image.configs.of(kind, resource_name).items()):
            yield ConfigRow(
                resource_type=ResourceType(kind).name,
                resource_name=resource_name,
                name=name,
                value=value,
                is_sensitive=is_sensitive(kind, name),
            )


def _quotas(image: MetadataImage) -> Iterator[QuotaRow]:
    rows = [
        QuotaRow(entity_columns(entity), key, value)
        for entity, values in image.client_quotas.entities.items()
        for key, value in values.items()
    ]
    # A default has no name; the flag makes None and texts comparable.
    rows.sort(
        key=lambda row: (
            [(kind, name is not None, name or "") for kind, name in row.entity],
            row.key,
        )
    )
    yield from rows


@dataclass(frozen=True, slots=True)
class SavedHistory:
    """The state of a history: open intervals, the published image, and an open transaction.

    `document` is a JSON object; `in_transaction` are the records of the open transaction so far,
    its begin included.

        kvorum-history-1 LF | zlib of: JSON LF | (length of 4 bytes, big-endian | metadata record)*

    The records are those of a snapshot of the image, in the frames of the metadata log. The
    features are in the JSON: the records are written at the highest level, which has a place for
    everything.
    """

    document: dict[str, Any]
    image: MetadataImage
    in_transaction: tuple[LogRecord, ...]

    def encode(self) -> bytes:
        """Return the state as bytes."""
        features = self.image.features
        document = {
            **self.document,
            "last_offset": self.image.last_offset,
            "metadata_version": features.metadata_version,
            "feature_levels": dict(features.levels),
            "in_transaction": [_record_to_json(record) for record in self.in_transaction],
        }
        parts = [json.dumps(document, separators=(",", ":")).encode(), b"\n"]
        for message, version in image_records(replace(self.image, features=_EVERYTHING)):
            encoded = encode_record(message, version)
            parts += (_LENGTH.pack(len(encoded)), encoded)
        return MAGIC + zlib.compress(b"".join(parts), zlib.Z_BEST_SPEED)

    @classmethod
    def decode(cls, data: bytes) -> SavedHistory:
        """Return the state that `encode` wrote; raises `SavedHistoryError` for other bytes."""
        if not data.startswith(MAGIC):
            raise SavedHistoryError("the bytes are not a history that this release saved")
        try:
            first_line, _, records = zlib.decompress(data[len(MAGIC) :]).partition(b"\n")
            document: dict[str, Any] = json.loads(first_line)
            image = _image(document, records)
            in_transaction = tuple(map(_record_from_json, document["in_transaction"]))
        except (zlib.error, ValueError, KeyError, struct.error, MetadataError) as error:
            raise SavedHistoryError(f"the saved history is damaged: {error}") from error
        return cls(document, image, in_transaction)


def _image(document: dict[str, Any], records: bytes) -> MetadataImage:
    last_offset: int = document["last_offset"]
    image = MetadataImage().apply_all(
        (*decode_record(record), last_offset) for record in _frames(records)
    )
    level: int | None = document["metadata_version"]
    version = None if level is None else MetadataVersion(level)
    features = FeaturesImage(version, Map(document["feature_levels"]))
    return replace(image, features=features, last_offset=last_offset)


def _frames(records: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(records):
        (length,) = _LENGTH.unpack_from(records, start)
        start += _LENGTH.size
        yield records[start : start + length]
        start += length


def _record_to_json(record: LogRecord) -> list[Any]:
    encoded = base64.b64encode(encode_record(record.message, record.version))
    return [record.offset, record.epoch, record.timestamp_ms, encoded.decode("ascii")]


def _record_from_json(saved: list[Any]) -> LogRecord:
    offset, epoch, timestamp_ms, encoded = saved
    message, version = decode_record(base64.b64decode(encoded))
    return LogRecord(offset, epoch, timestamp_ms, message, version)


class MetadataHistory:
    """The history of a cluster up to the record that was added last."""

    def __init__(self) -> None:
        self._editor = ImageEditor(MetadataImage())
        self._last = _NOTHING_READ
        self._cluster = ClusterHistory()
        self._quorum = QuorumHistory()
        self._in_transaction: list[LogRecord] = []
        self._records_until_image = RECORDS_PER_IMAGE

    @classmethod
    def from_snapshot(
        cls, records: Iterable[LogRecord], *, end_offset: int, epoch: int
    ) -> MetadataHistory:
        """Return the history that begins with the state in a snapshot.

        `end_offset` and `epoch` are those in the snapshot's name. The intervals begin at
        `end_offset` - 1, the last offset that the snapshot covers, and at the time of that record,
        which is in the snapshot's header.
        """
        history = cls()
        position = Position(end_offset - 1, epoch, -1, is_snapshot=True)
        for record in records:
            if isinstance(record.message, SnapshotHeaderRecord):
                time = record.message.last_contained_log_timestamp
                position = position._replace(timestamp_ms=time)
            # The state of a snapshot has no rows: nothing ended or happened.
            for _ in history._apply(record, position):
                pass
        for _ in history._quorum.enter_epoch(position):
            pass
        history._last = position._replace(is_snapshot=False)
        return history

    @classmethod
    def from_bytes(cls, data: bytes) -> MetadataHistory:
        """Return the history that `to_bytes` saved; raises `SavedHistoryError` for other bytes."""
        saved = SavedHistory.decode(data)
        history = cls()
        history._editor = ImageEditor(saved.image)
        history._cluster = ClusterHistory.from_saved(saved.document["cluster"], saved.image)
        history._quorum = QuorumHistory.from_saved(saved.document["quorum"])
        history._last = Position(*saved.document["last"])
        for record in saved.in_transaction:
            history._fold(record)
        history._in_transaction = list(saved.in_transaction)
        return history

    def to_bytes(self) -> bytes:
        """Return the whole state, from which another process continues with the next record."""
        document: dict[str, Any] = {
            "cluster": self._cluster.to_saved(),
            "quorum": self._quorum.to_saved(),
            "last": self._last,
        }
        return SavedHistory(document, self._image(), tuple(self._in_transaction)).encode()

    @property
    def next_offset(self) -> int:
        """The offset of the record that must be added next."""
        return self._last.offset + 1

    @property
    def last_timestamp_ms(self) -> int:
        """The time of the record that was added last, in milliseconds since 1970; -1 for none."""
        return self._last.timestamp_ms

    def add_all(self, records: Iterable[LogRecord]) -> Iterator[HistoryRow]:
        """Yield the rows of all `records`, which are in the order of the log."""
        for record in records:
            yield from self.add(record)

    def add(self, record: LogRecord) -> Iterator[HistoryRow]:
        """Yield the rows of what ended or happened at `record`; exhaust it before the next call.

        A record that was added before is skipped. Raises `MissingOffsetsError` where records are
        missing before this one, and `ContradictionError` for a record that cannot follow; a history
        that raised must not be used again.
        """
        expected = self._last.offset + 1
        if record.offset < expected:
            return
        if record.offset > expected:
            raise MissingOffsetsError(expected=expected, found=record.offset)
        position = Position(record.offset, record.epoch, record.timestamp_ms)
        if record.epoch != self._last.epoch and not isinstance(record.message, LeaderChangeMessage):
            yield from self._quorum.enter_epoch(position)
        yield from self._apply(record, position)
        self._last = position
        self._records_until_image -= 1
        if self._records_until_image <= 0:
            self._editor.rebase(self._editor.finish())
            self._records_until_image = RECORDS_PER_IMAGE

    def open_rows(self) -> Iterator[HistoryRow]:
        """Yield a row for each interval that is open after the last record.

        Leader changes are among them whose cause the next records may still show.
        """
        end = log_end(self._last)
        yield from self._cluster.open_rows(end)
        yield from self._quorum.open_rows(end)

    def end_state(self) -> Iterator[StateRow]:
        """Yield the rows of the tables of the state after the last record."""
        yield from end_state(self._image(), self._quorum.voters)

    def _image(self) -> MetadataImage:
        """Return the image without the records of an open transaction."""
        image = self._editor.finish()
        self._editor.rebase(image)
        assert isinstance(image, MetadataImage)
        return image.published

    def _apply(self, record: LogRecord, position: Position) -> Iterable[HistoryRow]:
        """Return the rows of a record at `position`; a transaction takes effect where it ends."""
        message, editor = record.message, self._editor
        if isinstance(message, PartitionChangeRecord) and editor.transaction is None:
            # Almost every record of a log is one of these, so the way is short.
            self._fold(record)
            return self._cluster.partition_changed(
                message.topic_id, message.partition_id, editor, position
            )
        if message.API_KEY is None:
            return chain(
                self._cluster.end_run(message), self._quorum.control_record(message, position)
            )
        transaction = editor.transaction
        before = parts_of(editor if transaction is None else transaction.before)
        self._fold(record)
        if editor.transaction is not None:
            self._in_transaction.append(record)
            return ()
        # After an abort the state is the one before, so these records show no differences.
        messages = [*(earlier.message for earlier in self._in_transaction), message]
        self._in_transaction = []
        return self._cluster.changed(messages, before, editor, position)

    def _fold(self, record: LogRecord) -> None:
        try:
            fold_record(self._editor, record.message, record.offset)
        except MetadataError as error:
            raise ContradictionError(offset=record.offset, reason=str(error)) from error
