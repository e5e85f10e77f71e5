"""A real broker and ours that answer the same requests about groups."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.interop.group_script import FIRST_WITH_TOPIC_IDS, TOPICS, Step
from tests.support.raw_client import RawClient

from kvorum.groups.records import decode_record
from kvorum.wire.apis import response_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kvorum.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kvorum.wire.messages.group_metadata_value import GroupMetadataValue
from kvorum.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kvorum.wire.messages.offset_commit import OffsetCommitRequest
from kvorum.wire.messages.offset_commit_value import OffsetCommitValue
from kvorum.wire.messages.offset_fetch import OffsetFetchRequest
from kvorum.wire.primitives import Message
from kvorum.wire.records import read_batches
from kvorum.wire.uuid_text import ZERO_UUID

PARTITIONS: Final = 3
SETTINGS: Final = {
    "offsets.topic.num.partitions": str(PARTITIONS),
    "group.initial.rebalance.delay.ms": "0",
}
MEMBER_ID: Final = re.compile(r"(?:raw|inst-\d)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
A_TIME: Final = 1_000_000_000_000


UNKNOWN_TOPIC_ID: Final = b"\7" * 16


@dataclass
class Server:
    """A connection to a broker, and the ids by which it knows members and topics."""

    client: RawClient
    topic_ids: dict[str, bytes] = field(default_factory=dict[str, bytes])
    member_ids: list[str] = field(default_factory=list[str])

    def ask(self, step: Step) -> Any:
        """Send a step's request with this server's ids."""
        kind = type(step.request)
        assert kind.API_KEY is not None
        request = self._own(kind.decode(step.request.encode(step.version), step.version))
        if step.version >= FIRST_WITH_TOPIC_IDS:
            self._give_topic_ids(step.request, request)
        return self.client.ask(request, response_class(kind.API_KEY), step.version)

    def common(self, text: str) -> str:
        """Return a text with the common names of members and topics."""
        for found in MEMBER_ID.findall(text):
            if found not in self.member_ids:
                self.member_ids.append(found)
        for number, member_id in enumerate(self.member_ids):
            text = text.replace(member_id, f"#{number}")
        for name, topic_id in self.topic_ids.items():
            text = text.replace(repr(topic_id), name)
        return text

    def _own(self, request: Any) -> Message:
        for one in (
            request,
            *getattr(request, "members", ()),
            *getattr(request, "assignments", ()),
        ):
            member_id = getattr(one, "member_id", None)
            if isinstance(member_id, str) and member_id.startswith("#"):
                one.member_id = self.member_ids[int(member_id[1:])]
        assert isinstance(request, Message)
        return request

    def _give_topic_ids(self, named: Message, request: Message) -> None:
        if isinstance(named, OffsetCommitRequest) and isinstance(request, OffsetCommitRequest):
            pairs = list(zip(named.topics, request.topics, strict=True))
            for theirs, own in pairs:
                own.topic_id = self.topic_ids.get(theirs.name, UNKNOWN_TOPIC_ID)
        if isinstance(named, OffsetFetchRequest) and isinstance(request, OffsetFetchRequest):
            for their_group, group in zip(named.groups, request.groups, strict=True):
                for wish, own_wish in zip(
                    their_group.topics or (), group.topics or (), strict=True
                ):
                    own_wish.topic_id = self.topic_ids.get(wish.name, UNKNOWN_TOPIC_ID)


def coordinates(client: RawClient) -> bool:
    """Return whether the broker has a coordinator for every partition."""
    names = [f"group-{number}" for number in range(40)]
    found = client.ask(FindCoordinatorRequest("", 0, names), FindCoordinatorResponse, 4)
    described = client.ask(DescribeGroupsRequest(names), DescribeGroupsResponse, 5)
    codes = {one.error_code for one in found.coordinators}
    codes |= {one.error_code for one in described.groups}
    return codes == {ErrorCode.NONE}


def topic_ids(client: RawClient) -> dict[str, bytes]:
    request = MetadataRequest([MetadataRequestTopic(name=name) for name in TOPICS])
    answer = client.ask(request, MetadataResponse, 12)
    return {
        str(topic.name): topic.topic_id for topic in answer.topics if topic.topic_id != ZERO_UUID
    }


def batches(directory: Path, server: Server) -> list[object]:
    """Return the batches of a partition, with times left out, and the ids that all servers use."""
    (file,) = sorted(directory.glob("*.log"))
    found: list[object] = []
    for batch in read_batches(file.read_bytes()):
        header = batch._replace(
            length=0, crc=0, base_timestamp=0, max_timestamp=0, data=memoryview(b"")
        )
        assert batch.base_timestamp > A_TIME
        read = list(batch.records())
        records = [server.common(_record(one.key, one.value, server)) for one in read]
        if all(one.value is None for one in read):
            # A group's offsets end in the order of Java's hashes.
            records.sort()
        found.append((header._replace(position=0), records))
    return found


def _record(key: bytes | None, value: bytes | None, server: Server) -> str:
    assert key is not None
    record = decode_record(key, value)
    assert record is not None
    content = record.value
    if isinstance(content, GroupMetadataValue):
        content.members.sort(key=lambda one: server.common(one.member_id))
        content.current_state_timestamp = min(content.current_state_timestamp, A_TIME)
    if isinstance(content, OffsetCommitValue):
        content.commit_timestamp = min(content.commit_timestamp, A_TIME)
        content.expire_timestamp = min(content.expire_timestamp, A_TIME)
    return repr(record)
