"""Steps for consumer groups, made up by what is likely to matter next."""

import re
from random import Random
from typing import Final

from tests.interop.consumer_group_client import ASSIGNORS, REBALANCE_TIMEOUTS_MS, Client
from tests.interop.coordinator_steps import GROUPS, INSTANCES, CoordinatorSteps
from tests.interop.metadata_steps import MetadataSteps, Topic, deletion

from kvorum.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kvorum.wire.messages.consumer_group_partition_metadata_key import (
    ConsumerGroupPartitionMetadataKey,
)
from kvorum.wire.messages.consumer_group_partition_metadata_value import (
    ConsumerGroupPartitionMetadataValue,
)
from kvorum.wire.messages.heartbeat import HeartbeatRequest
from kvorum.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
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
from kvorum.wire.messages.sync_group import SyncGroupRequest
from kvorum.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kvorum.wire.uuid_text import uuid_to_text

CROWD: Final = 50
"""A number of consumers of a group by which many share a bucket of Java's tables."""
CLIENT_COUNTS: Final = (3, 7, 7, CROWD)
"""The numbers of consumers of a group that a script lets live."""
FAILING_SCRIPTS: Final = 0.4
FAILING_APPENDS: Final = 0.06
HOPELESS: Final = frozenset({81, 111, 128})
"""Codes after which a consumer often gives up: full group, taken instance id, bad regex."""
PERIODS_MS: Final = (1, 100, 999, 1_000, 1_001, 5_000, 10_000, 10_001, 60_001)
PARTITION_METADATA_TYPE: Final = b"\0\x04"
VERSION_0: Final = b"\0\0"
SUBSCRIPTION: Final = bytes.fromhex("0000 00000001 0003 6f6e65 ffffffff")
"""A classic member's subscription to the topic "one", version 0."""
_TIMER: Final = re.compile(r" timer (\S+)@(\d+)")
_TASK: Final = re.compile(r" task (\S+)")
_MEMBER_EPOCH: Final = re.compile(r" member (\S+) .{10,}? (-?\d+)<")


class ConsumerGroupScript(CoordinatorSteps):
    """Makes steps from what the last answer showed; mostly right, and often nearly right."""

    def __init__(self, random: Random) -> None:
        super().__init__(random, failing_scripts=FAILING_SCRIPTS, failing_appends=FAILING_APPENDS)
        self._metadata = MetadataSteps(random)
        self._now = 0
        self._clients_max = random.choice(CLIENT_COUNTS)
        self._is_begun = False
        self._has_reverted = False
        self._state = ""
        self._clients: list[Client] = []
        self._classic_members: dict[str, str] = {}
        self._asking: Client | None = None
        self._deleted: list[Topic] = []
        self._kinds = {
            self._heartbeat: 60,
            self._join: 60 if self._clients_max == CROWD else 6,
            self._odd_heartbeat: 3,
            self._other_instance: 1,
            self._topics: 4,
            self._group_config: 1,
            self._offset_commit: 6,
            self._transactional_commit: 2,
            self._marker: 1,
            self._fetch: 3,
            self._delete_offsets: 2,
            self._delete_groups: 1,
            self._describe: 5,
            self._list: 1,
            self._classic_join: 1,
            self._classic_leave: 2,
            self._classic_request: 2,
            self._removal: 1,
            self._old_record: 1,
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
            return deletion(self._deleted.pop(), self._failure())
        chance = random.random()
        if chance < 0.15:
            return "commit"
        tasks = _TASK.findall(self._state)
        if tasks and chance < 0.35:
            return f"task {random.choice(tasks)} {self._failure()}"
        due = [key for key, deadline in self._timers() if deadline <= self._now]
        if due and chance < 0.5:
            return f"fire {random.choice(due)} {self._failure()}"
        if chance < 0.35:
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
        response, _, _ = answer.partition(" | ")
        failure = 0
        if kind in ("fire", "task", "topic"):
            failure = int(parts[-1])
        elif len(parts) == 4 and kind != "image":
            failure = int(parts[2])
        self._has_reverted |= failure != 0
        if self._asking is not None:
            self._learn_heartbeat(self._asking, response, is_lost=failure != 0)
            self._asking = None
        if kind == "join":
            self._learn_join(answer)

    def _learn_heartbeat(self, client: Client, response: str, *, is_lost: bool) -> None:
        if is_lost or self._random.random() < 0.07:
            client.is_answer_lost = True
        elif response.startswith("error "):
            code = int(response.split(" ")[1])
            client.refused(code)
            if code in HOPELESS and self._random.random() < 0.5:
                self._clients.remove(client)
        else:
            client.learn(ConsumerGroupHeartbeatResponse.decode(bytes.fromhex(response), 1))
            if client.epoch < 0 and client.instance_id is None:
                self._clients.remove(client)

    def _learn_join(self, answer: str) -> None:
        for text in re.findall(r"join:\w+:([0-9a-f]+)", answer):
            response = JoinGroupResponse.decode(bytes.fromhex(text), 9)
            if response.member_id and not response.error_code:
                self._classic_members[response.member_id] = self._classic_group

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

    def _heartbeat(self) -> str:
        if not self._clients:
            return self._join()
        return self._asked(self._random.choice(self._clients))

    def _asked(self, client: Client) -> str:
        self._asking = client
        request = client.request(self._random)
        # Only the first version lets the group choose the id of a member, and it knows no regex.
        version = 1 if client.member_id else 0
        return self._line("consumer_heartbeat", version, request)

    def _join(self) -> str:
        random = self._random
        group_id = self._group_id()
        instance_id = random.choice(INSTANCES) if random.random() < 0.35 else None
        member_id = uuid_to_text(random.randbytes(16))
        if random.random() < 0.1:
            member_id = ""
        client = Client(group_id, member_id, instance_id, names=["one"], regex=None)
        client.subscribe(random)
        if not member_id:
            client.names, client.regex = client.names or ["two"], None
        client.assignor = random.choice(ASSIGNORS)
        client.rebalance_timeout_ms = random.choice(REBALANCE_TIMEOUTS_MS)
        if len([one for one in self._clients if one.group_id == group_id]) >= self._clients_max:
            return self._heartbeat() if self._clients else "commit"
        self._clients.append(client)
        return self._asked(client)

    def _other_instance(self) -> str:
        """Return a join of a member that is there, under an instance id that may be another."""
        by_name = [client for client in self._clients if client.regex is None]
        if not by_name:
            return "commit"
        client = self._random.choice(by_name)
        client.instance_id = self._random.choice(INSTANCES)
        client.epoch = 0
        return self._asked(client)

    def _odd_heartbeat(self) -> str:
        """Return a heartbeat of no member, or of a member with what is another one's."""
        random = self._random
        members = _MEMBER_EPOCH.findall(self._state)
        member_id, epoch = random.choice([*members, ("nobody", "1")])
        request = ConsumerGroupHeartbeatRequest(
            group_id=random.choice((*GROUPS, *GROUPS, "absent")),
            member_id=member_id,
            member_epoch=random.choice((int(epoch), int(epoch), -1)),
            instance_id=random.choice((None, None, *INSTANCES)),
        )
        if request.instance_id is not None and random.random() < 0.3:
            request.member_epoch = -2
        return self._line("consumer_heartbeat", 1, request)

    def _topics(self) -> str:
        if self._random.random() < 0.1:
            return self._metadata.other()
        line, self._deleted = self._metadata.topics_change()
        return line

    def _group_config(self) -> str:
        return self._metadata.group_config(self._group_id())

    def _member(self) -> tuple[str, str, int]:
        """Return the group, the id and the epoch of a client, or nearly so."""
        random = self._random
        if not self._clients or random.random() < 0.2:
            return self._group_id(), random.choice(("", "nobody")), random.choice((-1, 0, 3))
        client = random.choice(self._clients)
        epoch = client.epoch - random.choice((0, 0, 0, 1, 2, -1))
        return client.group_id, client.member_id, epoch

    def _topic_of_commit(self) -> tuple[str, bytes]:
        topics = list(self._metadata.topics.values())
        if not topics or self._random.random() < 0.1:
            return "absent", bytes(16)
        topic = self._random.choice(topics)
        return topic.name, topic.topic_id

    def _offset_commit(self) -> str:
        random = self._random
        version = random.choice((8, 9, 9, 10, 10, 10))
        group_id, member_id, epoch = self._member()
        topics: list[OffsetCommitRequestTopic] = []
        for _ in range(random.choice((1, 2))):
            name, topic_id = self._topic_of_commit()
            partitions = [
                OffsetCommitRequestPartition(index, random.randrange(1000), 3, "m")
                for index in random.sample((0, 1, 2, 3), 2)
            ]
            topics.append(OffsetCommitRequestTopic(name, topic_id, partitions))
        request = OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=topics,
        )
        return self._line("commit_offsets", version, request)

    def _transactional_commit(self) -> str:
        random = self._random
        group_id, member_id, epoch = self._member()
        name, _ = self._topic_of_commit()
        partitions = [TxnOffsetCommitRequestPartition(0, random.randrange(1000), 2, "t")]
        request = TxnOffsetCommitRequest(
            transactional_id="t",
            group_id=group_id,
            producer_id=random.choice((7, 8)),
            producer_epoch=0,
            generation_id_or_member_epoch=epoch,
            member_id=member_id,
            topics=[TxnOffsetCommitRequestTopic(name, partitions=partitions)],
        )
        return self._line("txn", 5, request)

    def _marker(self) -> str:
        return f"marker {self._random.choice((7, 8))} {self._random.choice(('commit', 'abort'))}"

    def _fetch(self) -> str:
        random = self._random
        if self._has_reverted:
            return "commit"
        group_id, member_id, epoch = self._member()
        if not member_id or random.random() < 0.3:
            named, epoch = None, -1
        else:
            named = member_id
        topics = [
            OffsetFetchRequestTopics(one.name, one.topic_id, [0, 1, 2])
            for one in self._metadata.topics.values()
        ]
        group = OffsetFetchRequestGroup(
            group_id=group_id,
            member_id=named,
            member_epoch=epoch,
            topics=topics if random.random() < 0.7 else None,
        )
        request = OffsetFetchRequest(groups=[group], require_stable=random.random() < 0.5)
        return self._line("fetch", random.choice((9, 10)), request)

    def _delete_offsets(self) -> str:
        name, _ = self._topic_of_commit()
        topic = OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(0)])
        return self._line("delete_offsets", 0, OffsetDeleteRequest(self._group_id(), [topic]))

    def _delete_groups(self) -> str:
        return self._text("delete_groups", 2, ",".join((*GROUPS, "absent")))

    def _describe(self) -> str:
        if self._has_reverted:
            # Kafka does not show committed members rightly after a failed append.
            return "commit"
        kind = self._random.choice(("describe_consumer", "describe_consumer", "describe"))
        return self._text(kind, 6, ",".join((*GROUPS, "absent")))

    def _list(self) -> str:
        random = self._random
        if self._has_reverted:
            return "commit"
        states = random.choice(("", "stable,", "Empty,ASSIGNING,", "reconciling,Assigning,"))
        types = random.choice(("", "classic", "Classic,consumer", "consumer"))
        return self._text("list", 5, f"{states}/,{types}")

    def _classic_join(self) -> str:
        """Return a step in which a member of the classic protocol joins, which gets an id."""
        self._classic_group = self._group_id()
        request = JoinGroupRequest(
            group_id=self._classic_group,
            session_timeout_ms=6000,
            rebalance_timeout_ms=5000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", SUBSCRIPTION)],
        )
        return self._line("join", 3, request)

    def _classic_leave(self) -> str:
        if not self._classic_members:
            return "commit"
        member_id = self._random.choice(list(self._classic_members))
        group_id = self._classic_members.pop(member_id)
        members = [LeaveGroupRequest.MemberIdentity(member_id, None)]
        return self._line("leave", 5, LeaveGroupRequest(group_id=group_id, members=members))

    def _classic_request(self) -> str:
        """Return a step of the classic protocol, sometimes with what a consumer is called."""
        group_id, member_id, epoch = self._member()
        if self._classic_members and self._random.random() < 0.5:
            member_id = self._random.choice(list(self._classic_members))
            group_id, epoch = self._classic_members[member_id], 1
        if self._random.random() < 0.5:
            return self._line("heartbeat", 4, HeartbeatRequest(group_id, epoch, member_id))
        return self._line("sync", 5, SyncGroupRequest(group_id, epoch, member_id))

    def _removal(self) -> str:
        """Return the step in which an operator removes consumers of a consumer group."""
        random = self._random
        members: list[LeaveGroupRequest.MemberIdentity] = []
        group_id = self._group_id()
        of_group = [one for one in self._clients if one.group_id == group_id]
        for client in random.sample(of_group, min(len(of_group), random.choice((1, 1, 2, 3)))):
            member_id = "" if client.instance_id and random.random() < 0.5 else client.member_id
            if random.random() < 0.1:
                member_id = "nobody"
            members.append(LeaveGroupRequest.MemberIdentity(member_id, client.instance_id))
        return self._line("leave", 5, LeaveGroupRequest(group_id=group_id, members=members))

    def _old_record(self) -> str:
        """Return a step with the record of topics that releases before 4.1 wrote, or its end."""
        group_id = self._group_id()
        if f" consumer {group_id} " not in self._state:
            return "commit"
        key = PARTITION_METADATA_TYPE + ConsumerGroupPartitionMetadataKey(group_id).encode(0)
        value = "~"
        if self._random.random() < 0.8:
            value = (VERSION_0 + ConsumerGroupPartitionMetadataValue().encode(0)).hex()
        return f"raw -1 {key.hex()} {value}"

    def _late(self) -> str:
        return "late"

    def _load(self) -> str:
        return "load" if self._random.random() < 0.5 else "commit"
