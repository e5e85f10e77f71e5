"""Our group coordinator, driven and shown as GroupCoordinatorOracle.java does Kafka's."""

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final, NamedTuple, Protocol

from tests.interop.consumer_group_text import consumer_group_text
from tests.interop.hash_order import (
    record_text,
    sort_described,
    sort_heartbeat,
    sorted_assignment,
    sorted_records,
)
from tests.interop.share_group_steps import ShareGroupSteps
from tests.interop.share_group_text import share_group_text

from kvorum.coordinator.effects import Effects, Promise, SetTimer, Timeout
from kvorum.coordinator.result import CoordinatorResult
from kvorum.groups.classic_group.group import ClassicGroup
from kvorum.groups.consumer_group.group import ConsumerGroup
from kvorum.groups.promises import JoinPromise, SyncPromise
from kvorum.groups.request_context import RequestContext
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.groups.shard import GroupCoordinatorShard
from kvorum.groups.share_group.group import ShareGroup
from kvorum.metadata.api import RequestError
from kvorum.metadata.image import ImageDelta, MetadataImage
from kvorum.metadata.record_frame import decode_record
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kvorum.wire.messages.describe_groups import DescribeGroupsResponse
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest
from kvorum.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.offset_delete import OffsetDeleteRequest
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kvorum.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from kvorum.wire.uuid_text import uuid_from_text

NO_PRODUCER_ID: Final = -1
REGEX_KEY: Final = "consumer-group-regex-"
"""The beginning of the keys of timeouts that resolve a group's regular expressions."""
CLIENT_ID: Final = "client"
CLIENT_HOST: Final = "/127.0.0.1"


class Logged(NamedTuple):
    """A record, or a marker with `is_commit`."""

    producer_id: int
    key: bytes
    value: bytes | None
    is_commit: bool | None


class NamedTopic(Protocol):
    """A topic of a request, with name and id."""

    name: str
    topic_id: bytes


class Timer(NamedTuple):
    deadline_ms: int
    timeout: Timeout
    is_retried: bool


class Driver:
    """A shard with its log, its timers and the results that wait to be committed."""

    def __init__(
        self,
        settings: GroupCoordinatorSettings,
        new_uuid: Callable[[], str],
        hidden_topics: Collection[str] = (),
    ) -> None:
        self.settings = settings
        self._hidden_topics = hidden_topics
        self._new_uuid = new_uuid
        self.now = 0
        self.log: list[Logged] = []
        self.image = MetadataImage()
        self.timers: dict[str, Timer] = {}
        self.has_reverted = False
        """Whether an append failed since the start or the last load."""
        self._pending: deque[CoordinatorResult[Any]] = deque()
        self._promises: dict[Promise[Any], str] = {}
        self._answers: list[str] = []
        self.shard = GroupCoordinatorShard(settings, new_uuid, image=lambda: self.image)
        self._take(self.shard.on_loaded(0))

    def answer(self, line: str) -> str:
        self._answers = []
        result = self._step(line.split(" "))
        return f"{result} | {' '.join(self._answers)} | {self.described()}"

    def _step(self, parts: list[str]) -> str:
        match parts[0]:
            case "time":
                self.now = int(parts[1])
            case "fire":
                return self._fired(parts[1], int(parts[2]))
            case "task":
                return self._fired(REGEX_KEY + parts[1], int(parts[2]))
            case "image":
                self._publish(int(parts[1]), parts[2:])
            case "topic":
                topic = TopicImage(parts[1].replace("~", ""), uuid_from_text(parts[2]))
                return self._written(self.shard.on_topics_deleted([topic]), int(parts[3]))
            case "state_topic":
                gone = TopicImage("", uuid_from_text(parts[1]))
                return self._written(self.shard.on_state_topics_deleted([gone]), int(parts[2]))
            case "unload":
                self._take(self.shard.on_unloaded(self.now))
                # The order of groups is by Java's hashes.
                self._answers.sort()
            case "commit" | "late" | "marker" | "raw" | "load":
                self._step_of_log(parts)
            case _:
                of_share = self._share_request(parts)
                return self._request(parts) if of_share is None else of_share
        return "ok | "

    def _step_of_log(self, parts: list[str]) -> None:
        match parts[0]:
            case "commit":
                self._commit()
            case "late":
                self._fail_late()
            case "marker":
                self._log_and_replay(Logged(int(parts[1]), b"", None, parts[2] == "commit"))
            case "raw":
                value = None if parts[3] == "~" else bytes.fromhex(parts[3])
                key = bytes.fromhex(parts[2])
                self._log_and_replay(Logged(int(parts[1]), key, value, None))
            case _:
                self._load()

    def _fired(self, key: str, failure: int) -> str:
        result = self.shard.on_timeout(self.timers.pop(key).timeout, self.now)
        return self._written(result, failure)

    def _publish(self, offset: int, records: list[str]) -> None:
        before = self.image
        decoded = (decode_record(bytes.fromhex(one)) for one in records)
        self.image = before.apply_all((message, version, offset) for message, version in decoded)
        topics = ImageDelta(before, self.image).topics
        changed = (new for _, new in topics.changed.values())
        names = {one.name for one in (*topics.added.values(), *changed, *topics.removed.values())}
        result = self.shard.on_topics_changed(names, has_new_topics=bool(topics.added))
        assert not result.records
        self._take(result.effects)

    def _commit(self) -> None:
        self.shard.timeline.commit(len(self.log))
        while self._pending:
            append = self._pending.popleft().append
            if append is not None:
                self._take(self.shard.append_completed(append, self.now))

    def _fail_late(self) -> None:
        append = self._pending.popleft().append if self._pending else None
        if append is not None:
            self._take(self.shard.append_failed(append, ErrorCode.REQUEST_TIMED_OUT, self.now))

    def _load(self) -> None:
        self.has_reverted = False
        self._pending.clear()
        self.timers.clear()
        # Metadata comes while the log is read: the newest counts when the shard is loaded.
        image, self.image = self.image, MetadataImage()
        self.shard = GroupCoordinatorShard(self.settings, self._new_uuid, image=lambda: self.image)
        for offset in range(len(self.log)):
            self._replay(offset)
        self.image = image
        self.shard.timeline.written_offset = len(self.log)
        self.shard.timeline.commit(len(self.log))
        self._take(self.shard.on_loaded(self.now))

    def _log_and_replay(self, logged: Logged) -> None:
        self.log.append(logged)
        self._replay(len(self.log) - 1)
        self.shard.timeline.written_offset = len(self.log)

    def _replay(self, offset: int) -> None:
        logged = self.log[offset]
        if logged.is_commit is not None:
            self.shard.replay_end_transaction_marker(logged.producer_id, is_commit=logged.is_commit)
            return
        self.shard.load_record(offset, logged.producer_id, logged.key, logged.value, self.now)

    def _share_request(self, parts: list[str]) -> str | None:
        """Return the answer to a request of share groups; None for another one."""
        name, version, failure, data = parts[0], int(parts[1]), int(parts[3]), parts[4]
        steps = ShareGroupSteps(
            self.shard, self.now, lambda result, answered: self._written(result, failure, answered)
        )
        context = RequestContext(version, CLIENT_ID, CLIENT_HOST)
        return steps.request(name, context, bytes.fromhex(data))

    def _request(self, parts: list[str]) -> str:
        name, version, failure, data = parts[0], int(parts[1]), int(parts[3]), parts[4]
        context = RequestContext(version, CLIENT_ID, CLIENT_HOST, self._describable_topics)
        body = bytes.fromhex(data)
        shard, now = self.shard, self.now
        match name:
            case "consumer_heartbeat":
                request = ConsumerGroupHeartbeatRequest.decode(body, version)
                return self._consumer_heartbeat(context, request, failure)
            case "join":
                promise = JoinPromise(lambda _: None, version=version)
                self._promises[promise] = f"join:{parts[2]}"
                join = JoinGroupRequest.decode(body, version)
                return self._written(shard.join_group(context, join, promise, now), failure)
            case "sync":
                waiting = SyncPromise(lambda _: None)
                self._promises[waiting] = f"sync:{parts[2]}"
                sync = SyncGroupRequest.decode(body, version)
                return self._written(shard.sync_group(sync, waiting), failure)
            case "heartbeat":
                beat = HeartbeatRequest.decode(body, version)
                return self._written(shard.heartbeat(beat, now), failure, 4)
            case "leave":
                leave = LeaveGroupRequest.decode(body, version)
                return self._written(shard.leave_group(leave, now), failure, 5)
            case "commit_offsets":
                commit = OffsetCommitRequest.decode(body, version)
                self._fill_in(commit.topics)
                return self._written(shard.commit_offsets(context, commit, now), failure, version)
            case "txn":
                txn = TxnOffsetCommitRequest.decode(body, version)
                self._fill_in(txn.topics)
                result = shard.commit_transactional_offsets(context, txn, now)
                return self._written(result, failure, 5, producer_id=txn.producer_id)
            case "delete_offsets":
                delete = OffsetDeleteRequest.decode(body, version)
                return self._written(shard.delete_offsets(delete), failure, 0)
            case "fetch":
                fetch = OffsetFetchRequest.decode(body, version)
                self._fill_in(fetch.groups[0].topics or ())
                return self._fetched(fetch)
            case _:
                return self._named(name, context, failure, body.decode())

    def _describable_topics(self, names: Collection[str]) -> frozenset[str]:
        return frozenset(names).difference(self._hidden_topics)

    def _fill_in(self, topics: Iterable[NamedTopic]) -> None:
        """Fill in the names or the ids of topics, of which a version of a request has only one."""
        by_id = self.image.topics.by_id
        for topic in topics:
            known = self.image.topics.by_name(topic.name) or by_id.get(topic.topic_id)
            if known is not None:
                topic.name, topic.topic_id = known.name, known.id

    def _consumer_heartbeat(
        self, context: RequestContext, request: ConsumerGroupHeartbeatRequest, failure: int
    ) -> str:
        result = self.shard.consumer_group_heartbeat(context, request, self.now)
        if result.error is not None:
            self._take(result.effects)
            message = result.error.message
            is_default = message == result.error.code.default_message
            text = "~" if message is None or is_default else message
            return f"error {int(result.error.code)} {text} | "
        assert result.response is not None
        sort_heartbeat(result.response)
        return self._written(result, failure, 1)

    def _fetched(self, request: OffsetFetchRequest) -> str:
        try:
            fetched = self.shard.fetch_offsets(
                request.groups[0], require_stable=request.require_stable
            )
        except RequestError as error:
            return f"error {int(error.code)} | "
        return f"{_fetch_text(fetched)} | "

    def _named(self, name: str, context: RequestContext, failure: int, text: str) -> str:
        names = [word for word in text.split(",") if word]
        if name == "delete_groups":
            result = self.shard.delete_groups(names)
            assert result.response is not None
            codes = "".join(f"{one.group_id}={int(one.error_code)}," for one in result.response)
            return codes + self._written(result, failure)
        if name == "describe":
            described = [self.shard.describe_group(context.version, one) for one in names]
            for member in (one for group in described for one in group.members):
                member.member_assignment = sorted_assignment(member.member_assignment)
            return f"{DescribeGroupsResponse(groups=described).encode(6).hex()} | "
        if name == "describe_consumer":
            groups = [self._consumer_group(one) for one in names]
            return f"{ConsumerGroupDescribeResponse(groups=groups).encode(1).hex()} | "
        bar = names.index("/")
        listed = self.shard.list_groups(names[:bar], names[bar + 1 :])
        texts = (
            f"{one.group_id}/{one.protocol_type}/{one.group_state}/{one.group_type}"
            for one in listed
        )
        return f"{','.join(sorted(texts))} | "

    def _consumer_group(self, group_id: str) -> ConsumerGroupDescribeResponse.DescribedGroup:
        try:
            described = self.shard.describe_consumer_group(group_id)
        except RequestError as error:
            return ConsumerGroupDescribeResponse.DescribedGroup(
                error_code=error.code, error_message=error.message, group_id=group_id
            )
        sort_described(described)
        return described

    def _written(
        self,
        result: CoordinatorResult[Any],
        failure: int,
        version: int | None = None,
        *,
        producer_id: int = NO_PRODUCER_ID,
    ) -> str:
        self._take(result.effects)
        if result.error is not None:
            return f"error {int(result.error.code)} | "
        base = len(self.log)
        texts: list[str] = []
        for record in result.records:
            key, value = record.key_bytes(), record.value_bytes()
            texts.append(record_text(record))
            if result.replay_records:
                self.shard.replay(len(self.log), producer_id, record, self.now)
            self.log.append(Logged(producer_id, key, value, None))
        texts = sorted_records(
            texts,
            is_unordered=result.response is None or len(texts) > 1,
            # The order of the members that an operator removes is that of a set.
            has_runs=not isinstance(result.response, LeaveGroupResponse),
        )
        if texts and failure:
            self.shard.timeline.revert(base)
            self.has_reverted = True
            del self.log[base:]
            if result.append is not None:
                error = ErrorCode(failure)
                self._take(self.shard.append_failed(result.append, error, self.now))
        elif texts:
            self.shard.timeline.written_offset = len(self.log)
            self._pending.append(result)
        elif not texts and result.append is not None:
            # As the runtime does: it waits for what was written before.
            if self.shard.timeline.committed_offset < len(self.log):
                self._pending.append(result)
            else:
                self._take(self.shard.append_completed(result.append, self.now))
        response = ""
        if version is not None:
            assert result.response is not None
            response = result.response.encode(version).hex()
        return f"{response} | {' '.join(texts)}"

    def _take(self, effects: Effects) -> None:
        for timer in effects.timers:
            if isinstance(timer, SetTimer):
                if timer.keeps_present and timer.timeout.key in self.timers:
                    continue
                deadline_ms = self.now + timer.delay_ms
                kept = Timer(deadline_ms, timer.timeout, timer.is_retried)
                self.timers[timer.timeout.key] = kept
            else:
                self.timers.pop(timer.key, None)
        for answer in effects.answers:
            version = 9 if isinstance(answer.promise, JoinPromise) else 5
            if isinstance(answer.response, SyncGroupResponse):
                answer.response.assignment = sorted_assignment(answer.response.assignment)
            response = answer.response.encode(version).hex()
            self._answers.append(f"{self._promises[answer.promise]}:{response}")

    def described(self) -> str:
        text = ""
        for group_id, group in sorted(self.shard.state.groups.items()):
            if isinstance(group, ConsumerGroup):
                text += consumer_group_text(group)
            elif isinstance(group, ShareGroup):
                state = self.shard.state.share_state_partitions.get(group_id)
                text += share_group_text(group, state)
            else:
                text += _described(group)
            request = OffsetFetchRequestGroup(group_id=group_id, topics=None)
            for is_stable in (True, False):
                fetched = self.shard.fetch_offsets(request, require_stable=is_stable)
                text += f" offsets {_fetch_text(fetched)}"
        tasks = {key for key in self.timers if key.startswith(REGEX_KEY)}
        for key, timer in sorted(self.timers.items()):
            if key not in tasks:
                text += f" timer {key}@{timer.deadline_ms}{'+' if timer.is_retried else ''}"
        text += "".join(f" task {key.removeprefix(REGEX_KEY)}" for key in sorted(tasks))
        return f"{text} waiting {len(self._pending)}"


def _fetch_text(group: OffsetFetchResponseGroup) -> str:
    texts = (
        f"{topic.name}:{one.partition_index}:{one.committed_offset}:{one.committed_leader_epoch}:"
        f"{one.metadata}:{int(one.error_code)}"
        for topic in group.topics
        for one in topic.partitions
    )
    return ",".join(sorted(set(texts)))


def _described(group: ClassicGroup) -> str:
    stamp = group.current_state_timestamp
    topics = group.subscribed_topics
    facts = (
        group.group_id,
        group.state.value,
        group.previous_state.value,
        group.generation_id,
        group.protocol_type or "~",
        "~" if group.protocol_name is None else group.protocol_name,
        "~" if group.leader_id is None else group.leader_id,
        -1 if stamp is None else stamp,
        int(group.new_member_added),
        group.awaiting_join_count,
        "~" if topics is None else ",".join(sorted(topics)),
    )
    text = f" group {' '.join(map(str, facts))}"
    text += f" expected {','.join(sorted(group.pending_join_members))}"
    text += f" unsynced {','.join(sorted(group.pending_sync_members))}"
    for member in group.members.values():
        waits = (member.awaiting_join is not None, member.awaiting_sync is not None, member.is_new)
        text += (
            f" member {member.member_id} {member.group_instance_id or '~'} "
            f"{''.join(str(int(flag)) for flag in waits)} "
            f"{member.session_timeout_ms} {member.rebalance_timeout_ms} "
            f"{sorted_assignment(member.assignment).hex()}"
        )
        for one in member.supported_protocols:
            text += f" {one.name}={one.metadata.hex()}"
    return text
