"""The history of everything that metadata records are about: which part each record concerns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from kvorum.history.intervals import Begin, End, IntervalEnd, Position, begin_at, end_at
from kvorum.history.partition_history import PartitionHistory
from kvorum.history.tables import (
    BrokerSessionRow,
    BrokerState,
    BrokerStateRow,
    ControllerRegistrationRow,
    HistoryRow,
)
from kvorum.history.value_changes import ConfigSubject, Parts, Subject, parts_of, subject_of
from kvorum.history.value_columns import endpoint_columns, feature_columns, log_dir_texts, state_of
from kvorum.metadata.cluster_image import BrokerRegistration, ClusterImage, ControllerRegistration
from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.replay import ImageEditor
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
from kvorum.wire.uuid_text import uuid_to_text

NodeRow: TypeAlias = BrokerSessionRow | BrokerStateRow | ControllerRegistrationRow


@dataclass(frozen=True, slots=True)
class OpenSession:
    """An incarnation of a broker, with the begins of its session and of its current state."""

    broker: BrokerRegistration
    begin: Begin
    state_begin: Begin
    first_unfenced: Begin | None = None
    last_fenced: Begin | None = None
    fenced_count: int = 0
    controlled_shutdown: Begin | None = None


class NodeHistory:
    """The history of all brokers and controllers up to the record that was handed in last."""

    def __init__(self) -> None:
        self._sessions: dict[int, OpenSession] = {}
        self._controllers: dict[int, tuple[ControllerRegistration, Begin]] = {}

    def broker_changed(
        self, broker_id: int, after: BrokerRegistration | None, position: Position
    ) -> Iterator[NodeRow]:
        """Yield the rows that end with a broker's change to `after`, None for unregistered."""
        session = self._sessions.get(broker_id)
        if session is None:
            if after is not None:
                self._sessions[broker_id] = _opened(after, position)
        elif after is None:
            del self._sessions[broker_id]
            yield from _session_rows(session, end_at(position, IntervalEnd.UNREGISTERED))
        elif after.incarnation_id != session.broker.incarnation_id:
            self._sessions[broker_id] = _opened(after, position)
            yield from _session_rows(session, end_at(position, IntervalEnd.SUPERSEDED))
        elif after != session.broker:
            if state_of(after) != state_of(session.broker):
                yield _state_row(session, end_at(position, IntervalEnd.CHANGED))
            self._sessions[broker_id] = _continued(session, after, position)

    def controller_changed(
        self, controller_id: int, after: ControllerRegistration | None, position: Position
    ) -> Iterator[NodeRow]:
        """Yield the registration of a controller that ends with `after`, None for unregistered."""
        before = self._controllers.pop(controller_id, None)
        if before is not None and before[0] == after:
            self._controllers[controller_id] = before
            return
        if before is not None:
            end = IntervalEnd.UNREGISTERED if after is None else IntervalEnd.SUPERSEDED
            yield _controller_row(*before, end_at(position, end))
        if after is not None:
            self._controllers[controller_id] = after, begin_at(position)

    def open_rows(self, end: End) -> Iterator[NodeRow]:
        """Yield a row for each open session, state and registration."""
        for session in self._sessions.values():
            yield from _session_rows(session, end)
        for registration, begin in self._controllers.values():
            yield _controller_row(registration, begin, end)

    def to_saved(self) -> dict[str, Any]:
        """Return the open intervals for `from_saved`, without the registrations."""
        return {
            "brokers": [
                [
                    broker_id,
                    session.begin,
                    session.state_begin,
                    session.first_unfenced,
                    session.last_fenced,
                    session.fenced_count,
                    session.controlled_shutdown,
                ]
                for broker_id, session in self._sessions.items()
            ],
            "controllers": [
                [controller_id, begin] for controller_id, (_, begin) in self._controllers.items()
            ],
        }

    @classmethod
    def from_saved(cls, saved: dict[str, Any], cluster: ClusterImage) -> NodeHistory:
        """Return the history that `to_saved` wrote, with the registrations of the image."""
        history = cls()
        for broker_id, begin, state_begin, unfenced, fenced, count, shutdown in saved["brokers"]:
            history._sessions[broker_id] = OpenSession(
                broker=cluster.brokers[broker_id],
                begin=Begin(*begin),
                state_begin=Begin(*state_begin),
                first_unfenced=_begin_or_none(unfenced),
                last_fenced=_begin_or_none(fenced),
                fenced_count=count,
                controlled_shutdown=_begin_or_none(shutdown),
            )
        for controller_id, begin in saved["controllers"]:
            history._controllers[controller_id] = cluster.controllers[controller_id], Begin(*begin)
        return history


def _begin_or_none(saved: list[Any] | None) -> Begin | None:
    return None if saved is None else Begin(*saved)


def _opened(broker: BrokerRegistration, position: Position) -> OpenSession:
    begin = begin_at(position)
    session = OpenSession(broker, begin, begin)
    # The times of events before a snapshot are not known: its state alone gives none.
    return session if position.is_snapshot else _with_state(session, state_of(broker), begin)


def _continued(session: OpenSession, after: BrokerRegistration, position: Position) -> OpenSession:
    before = state_of(session.broker)
    session = replace(session, broker=after)
    state = state_of(after)
    if state == before:
        return session
    begin = begin_at(position)
    session = _with_state(replace(session, state_begin=begin), state, begin)
    if state is BrokerState.FENCED:
        return replace(session, last_fenced=begin, fenced_count=session.fenced_count + 1)
    return session


def _with_state(session: OpenSession, state: BrokerState, begin: Begin) -> OpenSession:
    """Return `session` with the time of the first record that gave it `state`."""
    if state is BrokerState.UNFENCED and session.first_unfenced is None:
        return replace(session, first_unfenced=begin)
    if state is BrokerState.CONTROLLED_SHUTDOWN and session.controlled_shutdown is None:
        return replace(session, controlled_shutdown=begin)
    return session


def _session_rows(session: OpenSession, end: End) -> Iterator[NodeRow]:
    yield _state_row(session, end)
    broker, begin = session.broker, session.begin
    unfenced, fenced = session.first_unfenced, session.last_fenced
    shutdown = session.controlled_shutdown
    cordoned = broker.cordoned_directories
    yield BrokerSessionRow(
        broker_id=broker.id,
        incarnation_id=uuid_to_text(broker.incarnation_id),
        broker_epoch=broker.epoch,
        from_offset=begin.offset,
        from_time=begin.timestamp_ms,
        begins_earlier=begin.begins_earlier,
        first_unfenced_offset=None if unfenced is None else unfenced.offset,
        first_unfenced_time=None if unfenced is None else unfenced.timestamp_ms,
        last_fenced_offset=None if fenced is None else fenced.offset,
        last_fenced_time=None if fenced is None else fenced.timestamp_ms,
        fenced_count=session.fenced_count,
        controlled_shutdown_offset=None if shutdown is None else shutdown.offset,
        controlled_shutdown_time=None if shutdown is None else shutdown.timestamp_ms,
        to_offset=end.offset,
        to_time=end.timestamp_ms,
        end_reason=end.reason,
        rack=broker.rack,
        endpoints=endpoint_columns(broker.listeners),
        log_dirs=log_dir_texts(broker.directories),
        cordoned_log_dirs=None if cordoned is None else log_dir_texts(cordoned),
        features=feature_columns(broker.supported_features),
    )


def _state_row(session: OpenSession, end: End) -> BrokerStateRow:
    broker, begin = session.broker, session.state_begin
    incarnation_id = uuid_to_text(broker.incarnation_id)
    return BrokerStateRow(
        broker.id, incarnation_id, broker.epoch, state_of(broker), *begin, *end[:3]
    )


def _controller_row(
    controller: ControllerRegistration, begin: Begin, end: End
) -> ControllerRegistrationRow:
    return ControllerRegistrationRow(
        controller.id,
        uuid_to_text(controller.incarnation_id),
        *begin,
        *end[:3],
        endpoint_columns(controller.listeners),
        feature_columns(controller.supported_features),
    )


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
