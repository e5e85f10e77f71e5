"""Steps for share groups, made up by what is likely to matter next."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

from tests.interop.coordinator_steps import GROUPS, CoordinatorSteps
from tests.interop.metadata_steps import NAMES, MetadataSteps, Topic, deletion

from kvorum.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kvorum.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
)
from kvorum.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kvorum.wire.messages.leave_group import LeaveGroupRequest
from kvorum.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kvorum.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kvorum.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kvorum.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from kvorum.wire.messages.sync_group import SyncGroupRequest
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kvorum.wire.uuid_text import uuid_from_text, uuid_to_text

CLIENT_COUNTS: Final = (3, 7, 7, 40)
"""The numbers of members of a group that a script lets live."""
FAILING_SCRIPTS: Final = 0.4
FAILING_APPENDS: Final = 0.06
PERIODS_MS: Final = (1, 100, 999, 1_000, 1_001, 5_000, 10_000, 30_000, 60_001)
SHARE_CONFIGS: Final[Mapping[str, tuple[str, ...]]] = {
    "share.session.timeout.ms": ("30000", "50000", "60000"),
    "share.heartbeat.interval.ms": ("6000", "20000"),
    "share.assignment.interval.ms": ("0", "500", "5000", "20000"),
}
"""Values of the configuration of a share group, within the bounds of the broker and not."""
SUBSCRIPTION: Final = bytes.fromhex("0000 00000001 0003 6f6e65 ffffffff")
"""A classic member's subscription to the topic "one", version 0."""
_TIMER: Final = re.compile(r" timer (\S+)@(\d+)")
_MEMBER_EPOCH: Final = re.compile(r" member (\S+) \S+ client \S+ \S* (-?\d+)<")
_STATE: Final = re.compile(r" share (\w+) .*? initializing (\S*) initialized (\S*) deleting (\S*)")


@dataclass
class Client:
    """A member of a share group as its client sees it."""

    group_id: str
    member_id: str
    names: list[str]
    rack_id: str | None = None
    epoch: int = 0

    def request(self, random: Random) -> ShareGroupHeartbeatRequest:
        """Return a heartbeat, in which the client says all or what it has to."""
        request = ShareGroupHeartbeatRequest(self.group_id, self.member_id, self.epoch)
        chance = random.random()
        if chance < 0.04:
            request.member_epoch = -1
            return request
        if chance < 0.07:
            request.member_epoch = 0
        elif chance < 0.1:
            request.member_epoch -= 1
        if chance < 0.2 or request.member_epoch == 0:
            if chance < 0.15:
                self.names = random.sample(NAMES, random.choice((1, 1, 2, 3)))
            request.subscribed_topic_names = self.names
            request.rack_id = self.rack_id
        return request


class ShareGroupScript(CoordinatorSteps):
    """Makes steps from what the last answer showed; mostly right, and often nearly right."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, failing_scripts=FAILING_SCRIPTS, failing_appends=FAILING_APPENDS)
        self._metadata = MetadataSteps(random, SHARE_CONFIGS)
        self._now = 0
        self._clients_max = random.choice(CLIENT_COUNTS)
        self._has_others = random.random() < 0.4
        self._is_begun = False
        self._has_reverted = False
        self._state = ""
        self._clients: list[Client] = []
        self._consumers: dict[str, str] = {}
        self._asking: Client | None = None
        self._asked_states: list[tuple[str, dict[bytes, list[int]]]] = []
        self._deleted: list[Topic] = []
        self._forgotten: list[Topic] = []
        self._kinds = {
            self._heartbeat: 60,
            self._join: 6 if self._clients_max < max(CLIENT_COUNTS) else 60,
            self._odd_heartbeat: 3,
            self._topics: 5,
            self._group_config: 1,
            self._settle: 14,
            self._odd_settle: 1,
            self._alter_offsets: 4,
            self._delete_share_offsets: 3,
            self._complete_share_offsets: 2,
            self._delete_share_groups: 1,
            self._delete_groups: 1,
            self._describe: 4,
            self._list: 1,
            self._offsets: 3,
            self._classic_request: 2,
            self._other_group: 8 if self._has_others else 0,
            self._late: 1,
            self._load: 1,
        }

    def step(self) -> str:
        """Return the next step, which has to be followed by `learn`."""
        self._asking = None
        if not self._is_begun:
            self._is_begun = True
            return self._metadata.brokers()
        random = self._random
        if self._deleted and random.random() < 0.8:
            gone = self._deleted.pop()
            self._forgotten.append(gone)
            return deletion(gone, self._failure())
        if self._forgotten and random.random() < 0.5:
            gone = self._forgotten.pop()
            return f"state_topic {uuid_to_text(gone.topic_id)} {self._failure()}"
        chance = random.random()
        if chance < 0.15:
            return "commit"
        due = [key for key, deadline in self._timers() if deadline <= self._now]
        if due and chance < 0.4:
            return f"fire {random.choice(due)} {self._failure()}"
        if chance < 0.3:
            return f"time {self._now + self._elapsed()}"
        kinds = list(self._kinds)
        return random.choices(kinds, [self._kinds[kind] for kind in kinds])[0]()

    def learn(self, line: str, answer: str) -> None:
        """Take the answer to the last step."""
        self._state = answer.rpartition(" | ")[2]
        kind, *parts = line.split(" ")
        if kind == "time":
            self._now = int(parts[0])
        elif kind == "load":
            self._has_reverted = False
        failure = 0
        if kind in ("fire", "topic", "state_topic"):
            failure = int(parts[-1])
        elif len(parts) == 4 and kind != "image":
            failure = int(parts[2])
        self._has_reverted |= failure != 0
        response, _, _ = answer.partition(" | ")
        if self._asking is not None:
            self._learn_heartbeat(self._asking, response, is_lost=failure != 0)
        if kind in ("share_heartbeat", "alter_share_offsets") and not response.startswith("error"):
            self._learn_states(response.split(" ")[1])

    def _learn_heartbeat(self, client: Client, response: str, *, is_lost: bool) -> None:
        if is_lost or self._random.random() < 0.07:
            return
        if response.startswith("error "):
            client.epoch = 0
            if self._random.random() < 0.5:
                self._clients.remove(client)
            return
        data = bytes.fromhex(response.split(" ", maxsplit=1)[0])
        client.epoch = ShareGroupHeartbeatResponse.decode(data, 1).member_epoch
        if client.epoch < 0:
            self._clients.remove(client)

    def _learn_states(self, text: str) -> None:
        """Learn for which partitions a share coordinator is asked: ``group;topic:number@…;…``."""
        if text == "~":
            return
        group_id, *asked = text.split(";")
        partitions: dict[bytes, list[int]] = {}
        for one in filter(None, asked):
            topic, _, number = one.split("@")[0].rpartition(":")
            partitions.setdefault(uuid_from_text(topic), []).append(int(number))
        self._asked_states.append((group_id, partitions))

    def _timers(self) -> list[tuple[str, int]]:
        return [(key, int(deadline)) for key, deadline in _TIMER.findall(self._state)]

    def _elapsed(self) -> int:
        random = self._random
        future = [deadline for _, deadline in self._timers() if deadline > self._now]
        if random.random() < 0.15 and future:
            return max(0, min(future) - self._now + random.choice((-1, 0, 0, 1)))
        return random.choice(PERIODS_MS)

    def _group_id(self) -> str:
        return self._random.choice(GROUPS)

    # Members.

    def _heartbeat(self) -> str:
        if not self._clients:
            return self._join()
        return self._asked(self._random.choice(self._clients))

    def _asked(self, client: Client) -> str:
        self._asking = client
        return self._line("share_heartbeat", 1, client.request(self._random))

    def _join(self) -> str:
        random = self._random
        group_id = self._group_id()
        if len([one for one in self._clients if one.group_id == group_id]) >= self._clients_max:
            return self._heartbeat()
        names: list[str] = random.sample(NAMES, random.choice((1, 1, 2, 3)))
        client = Client(group_id, uuid_to_text(random.randbytes(16)), names)
        client.rack_id = random.choice((None, "r0", "r1"))
        self._clients.append(client)
        self._asking = client
        request = ShareGroupHeartbeatRequest(
            group_id, client.member_id, 0, client.rack_id, client.names
        )
        return self._line("share_heartbeat", 1, request)

    def _odd_heartbeat(self) -> str:
        """Return a heartbeat of no member, or of a member at another epoch."""
        random = self._random
        member_id, epoch = random.choice([*_MEMBER_EPOCH.findall(self._state), ("nobody", "1")])
        request = ShareGroupHeartbeatRequest(
            group_id=random.choice((*GROUPS, *GROUPS, "absent")),
            member_id=member_id,
            member_epoch=max(int(epoch) + random.choice((-2, -1, 0, 1)), 1),
        )
        if random.random() < 0.2:
            request.member_epoch = -1
        return self._line("share_heartbeat", 1, request)

    def _topics(self) -> str:
        if self._random.random() < 0.1:
            return self._metadata.other()
        line, self._deleted = self._metadata.topics_change()
        return line

    def _group_config(self) -> str:
        return self._metadata.group_config(self._group_id())

    # States.

    def _settle(self) -> str:
        """Return the step with which a share coordinator has begun states, or has not."""
        random = self._random
        if not self._asked_states:
            return self._heartbeat()
        place = random.randrange(len(self._asked_states))
        group_id, partitions = self._asked_states[place]
        if random.random() < 0.9:
            self._asked_states.pop(place)
        chosen = {
            topic_id: numbers if random.random() < 0.8 else numbers[:1]
            for topic_id, numbers in partitions.items()
            if random.random() < 0.9
        }
        name = "initialize_share" if random.random() < 0.8 else "uninitialize_share"
        return self._line(name, 0, _state_request(group_id, chosen))

    def _odd_settle(self) -> str:
        random = self._random
        topic_ids = [topic.topic_id for topic in self._metadata.topics.values()]
        topic_id = random.choice([*topic_ids, bytes(15) + b"t"])
        group_id = random.choice((*GROUPS, "absent"))
        name = random.choice(("initialize_share", "uninitialize_share"))
        return self._line(name, 0, _state_request(group_id, {topic_id: [0, 1]}))

    def _some_names(self) -> list[str]:
        return self._random.sample((*NAMES, "absent"), self._random.choice((1, 2)))

    def _alter_offsets(self) -> str:
        random = self._random
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                name,
                [
                    AlterShareGroupOffsetsRequestPartition(index, random.choice((0, 5, 77)))
                    for index in random.sample((0, 1, 2, 30), 2)
                ],
            )
            for name in self._some_names()
        ]
        group_id = random.choice((*GROUPS, *GROUPS, "gc"))
        return self._line("alter_share_offsets", 0, AlterShareGroupOffsetsRequest(group_id, topics))

    def _delete_share_offsets(self) -> str:
        topics = [DeleteShareGroupOffsetsRequestTopic(name) for name in self._some_names()]
        group_id = self._random.choice((*GROUPS, *GROUPS, "absent"))
        request = DeleteShareGroupOffsetsRequest(group_id, topics)
        return self._line("delete_share_offsets", 0, request)

    def _complete_share_offsets(self) -> str:
        """Return the step with which a share coordinator has deleted the state of a topic."""
        deleting = [
            (group_id, uuid_from_text(topic))
            for group_id, _, _, topics in _STATE.findall(self._state)
            for topic in filter(None, topics.split(","))
        ]
        group_id, topic_id = self._random.choice([*deleting, ("absent", bytes(16))])
        return self._line("complete_share_offsets", 0, _state_request(group_id, {topic_id: []}))

    def _delete_share_groups(self) -> str:
        return self._text("delete_share_groups", 0, ",".join((*GROUPS, "gc", "absent")))

    def _delete_groups(self) -> str:
        return self._text("delete_groups", 2, ",".join((*GROUPS, "gc", "absent")))

    # Reads, and other protocols.

    def _describe(self) -> str:
        if self._has_reverted:
            # Kafka does not show committed members rightly after a failed append.
            return "commit"
        kind = self._random.choice(
            ("describe_share", "describe_share", "describe_consumer", "describe")
        )
        return self._text(kind, 6, ",".join((*GROUPS, "gc", "absent")))

    def _list(self) -> str:
        if self._has_reverted:
            return "commit"
        states = self._random.choice(("", "stable,", "Empty,", "dead,"))
        types = self._random.choice(("", "share", "Classic,SHARE", "consumer"))
        return self._text("list", 5, f"{states}/,{types}")

    def _offsets(self) -> str:
        random = self._random
        group_id = self._group_id()
        name = random.choice(NAMES)
        epoch = random.choice((-1, 3))
        match random.choice(("commit", "txn", "delete", "fetch")):
            case "commit" if epoch > 0 or self._has_others:
                partition = OffsetCommitRequestPartition(0, 7, 3, "m")
                topics = [OffsetCommitRequestTopic(name, bytes(16), [partition])]
                version = random.choice((8, 9))
                commit = OffsetCommitRequest(group_id, epoch, "", topics=topics)
                return self._line("commit_offsets", version, commit)
            case "txn" if epoch > 0 or self._has_others:
                place = TxnOffsetCommitRequestPartition(0, 7, 2, "t")
                of_topic = [TxnOffsetCommitRequestTopic(name, partitions=[place])]
                txn = TxnOffsetCommitRequest("t", group_id, 7, 0, epoch, topics=of_topic)
                return self._line("txn", 5, txn)
            case "delete":
                gone = OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)])
                return self._line("delete_offsets", 0, OffsetDeleteRequest(group_id, [gone]))
            case _:
                if self._has_reverted:
                    return "commit"
                asked = [OffsetFetchRequestTopics(name, bytes(16), [0, 1])]
                fetched = OffsetFetchRequestGroup(group_id, topics=random.choice((None, asked)))
                return self._line("fetch", 9, OffsetFetchRequest(groups=[fetched]))

    def _classic_request(self) -> str:
        """Return a step of the classic protocol; of a join only in scripts with other groups."""
        group_id = self._group_id()
        is_share = f" share {group_id} " in self._state
        match self._random.choice(("join", "heartbeat", "sync", "leave")):
            case "join" if is_share or self._has_others:
                protocols = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
                join = JoinGroupRequest(group_id, 6000, 5000, "", None, "consumer", protocols)
                return self._line("join", 3, join)
            case "sync":
                return self._line("sync", 5, SyncGroupRequest(group_id, 1, "nobody"))
            case "leave":
                members = [LeaveGroupRequest.MemberIdentity("nobody", None)]
                return self._line("leave", 5, LeaveGroupRequest(group_id, members=members))
            case _:
                return self._line("heartbeat", 4, HeartbeatRequest(group_id, 1, "nobody"))

    def _other_group(self) -> str:
        """Return a heartbeat of a consumer: it joins, or the one of the group leaves."""
        group_id = self._group_id()
        member_id = self._consumers.pop(group_id, None)
        if member_id is not None:
            left = ConsumerGroupHeartbeatRequest(group_id, member_id, -1)
            return self._line("consumer_heartbeat", 1, left)
        self._consumers[group_id] = member_id = uuid_to_text(self._random.randbytes(16))
        joined = ConsumerGroupHeartbeatRequest(group_id, member_id, 0)
        joined.rebalance_timeout_ms = 5_000
        joined.subscribed_topic_names = ["one"]
        joined.topic_partitions = []
        return self._line("consumer_heartbeat", 1, joined)

    def _late(self) -> str:
        return "late"

    def _load(self) -> str:
        return "load" if self._random.random() < 0.5 else "commit"


def _state_request(
    group_id: str, partitions: Mapping[bytes, list[int]]
) -> DeleteShareGroupStateRequest:
    """Return partitions of a group in a message that can hold them."""
    return DeleteShareGroupStateRequest(
        group_id,
        [
            DeleteShareGroupStateRequest.DeleteStateData(
                topic_id, [DeleteShareGroupStateRequest.PartitionData(one) for one in numbers]
            )
            for topic_id, numbers in partitions.items()
        ],
    )
