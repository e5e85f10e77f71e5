"""The history of everything that metadata records are about: which part each record concerns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.replay import ImageEditor
from kvorum.spark.history.intervals import End, Position
from kvorum.spark.history.node_history import NodeHistory
from kvorum.spark.history.partition_history import PartitionHistory
from kvorum.spark.history.tables import HistoryRow
from kvorum.spark.history.value_changes import ConfigSubject, Parts, Subject, parts_of, subject_of
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord
from kvorum.wire.primitives import Message


class ClusterHistory:
    """The histories of partitions and nodes, and the changes of values.

    The editor that is handed in has the state after the records; what was before is known here.
    """

    def __init__(self) -> None:
        self._partitions = PartitionHistory()
        self._nodes = NodeHistory()

    def changed(
        self, messages: Sequence[Message], before: Parts, editor: ImageEditor, position: Position
    ) -> Iterator[HistoryRow]:
        """Yield the rows of records that take effect together at `position`."""
        after = parts_of(editor)
        seen: set[Subject] = set()
        for message in messages:
            if not isinstance(message, PartitionChangeRecord):
                yield from self.end_run(message)
            subject = self._subject_of(message)
            yield from self._topic_rows(message, editor, position)
            yield from self._node_rows(message, after, position)
            if subject is None or subject in seen:
                continue
            seen.add(subject)
            if not position.is_snapshot:
                yield from subject.rows(before, after, position)
            if isinstance(subject, ConfigSubject):
                yield from self._partitions.config_changed(
                    subject.resource, before.configs, after.configs, position
                )

    def partition_changed(
        self, topic_id: bytes, index: int, editor: ImageEditor, position: Position
    ) -> Sequence[HistoryRow]:
        """Return the rows of a change of one partition."""
        after = editor.topics.partition(topic_id, index)
        # A partition that one transaction creates and removes was never there.
        if after is None:
            return ()
        return self._partitions.change(
            topic_id, index, after, cluster=editor.cluster, position=position
        )

    def end_run(self, message: Message) -> Iterator[HistoryRow]:
        """Yield the leader changes that wait for `message`, which changes no partition."""
        yield from self._partitions.leader_changes.end_run(message)

    def open_rows(self, end: End) -> Iterator[HistoryRow]:
        """Yield a row for each open interval."""
        yield from self._partitions.open_rows(end)
        yield from self._nodes.open_rows(end)

    def to_saved(self) -> dict[str, Any]:
        """Return the open intervals for `from_saved`; the image holds the rest of the state."""
        return {"partitions": self._partitions.to_saved(), "nodes": self._nodes.to_saved()}

    @classmethod
    def from_saved(cls, saved: dict[str, Any], image: MetadataImage) -> ClusterHistory:
        """Return the history that `to_saved` wrote, with the image of that moment."""
        history = cls()
        history._partitions = PartitionHistory.from_saved(saved["partitions"], image)
        history._nodes = NodeHistory.from_saved(saved["nodes"], image.cluster)
        return history

    def _subject_of(self, message: Message) -> Subject | None:
        if not isinstance(message, RemoveTopicRecord):
            return subject_of(message)
        # The configuration of a topic goes with it.
        name = self._partitions.topic_name(message.topic_id)
        if name is None:
            return None
        return ConfigSubject((ResourceType.TOPIC, name), is_topic_deleted=True)

    def _topic_rows(
        self, message: Message, editor: ImageEditor, position: Position
    ) -> Iterator[HistoryRow]:
        match message:
            case PartitionRecord() | PartitionChangeRecord():
                yield from self.partition_changed(
                    message.topic_id, message.partition_id, editor, position
                )
            case TopicRecord(topic_id=topic_id):
                if topic_id in editor.topics:
                    self._partitions.open_topic(topic_id, message.name, editor.configs)
            case RemoveTopicRecord(topic_id=topic_id):
                is_known = self._partitions.topic_name(topic_id) is not None
                if is_known and topic_id not in editor.topics:
                    yield from self._partitions.close_topic(topic_id, position)
            case ClearElrRecord():
                for topic_id, index in self._partitions.partitions_of(message.topic_name):
                    yield from self.partition_changed(topic_id, index, editor, position)
            case _:
                return

    def _node_rows(
        self, message: Message, after: Parts, position: Position
    ) -> Iterator[HistoryRow]:
        match message:
            case (
                RegisterBrokerRecord(broker_id=broker_id)
                | UnregisterBrokerRecord(broker_id=broker_id)
                | BrokerRegistrationChangeRecord(broker_id=broker_id)
                | FenceBrokerRecord(id=broker_id)
                | UnfenceBrokerRecord(id=broker_id)
            ):
                broker = after.cluster.brokers.get(broker_id)
                yield from self._nodes.broker_changed(broker_id, broker, position)
            case (
                RegisterControllerRecord(controller_id=controller_id)
                | UnregisterControllerRecord(controller_id=controller_id)
            ):
                controller = after.cluster.controllers.get(controller_id)
                yield from self._nodes.controller_changed(controller_id, controller, position)
            case _:
                return
