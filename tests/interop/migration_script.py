"""Steps for groups with members of both protocols, which change from one to the other and back."""

import re
from enum import Enum
from random import Random
from typing import Final

from tests.interop.classic_client import ClassicClient, Phase
from tests.interop.consumer_group_script import ConsumerGroupScript
from tests.interop.coordinator_steps import INSTANCES

from kvorum.wire.messages.heartbeat import HeartbeatResponse
from kvorum.wire.messages.join_group import JoinGroupResponse
from kvorum.wire.messages.sync_group import SyncGroupResponse

CLASSIC_CLIENTS_MAX: Final = 4
"""The number of classic consumers of a group that the script lets live."""
FIRST_TOPICS: Final = 4
"""The number of the first steps, of which each but one has a topic come."""
PERIODS_MS: Final = (1, 100, 100, 500, 500, 999, 1_000, 1_001, 3_000)
STEPS_OF_TIDE: Final = 25
"""The number of steps after which other members may come or go."""
_ANSWER: Final = re.compile(r"\b(join|sync):(\w+):([0-9a-f]+)")


class Tide(Enum):
    """The protocol whose members come while those of the other one go; or both."""

    BOTH = "both"
    CLASSIC = "classic"
    CONSUMER = "consumer"


class MigrationScript(ConsumerGroupScript):
    """Makes steps of both kinds of members for the same groups."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
        self._classic_clients: list[ClassicClient] = []
        self._waiting: dict[str, ClassicClient] = {}
        self._heartbeating: ClassicClient | None = None
        self._tide = Tide.BOTH
        self._step_count = 0
        for kind in (self._classic_join, self._classic_leave, self._classic_request):
            del self._kinds[kind]
        # These differ: Kafka leaves partitions without an owner if a member takes another's place
        # under its own id, and follows topics that a group consumed before a downgrade.
        for kind in (self._other_instance, self._old_record):
            del self._kinds[kind]
        self._kinds |= {self._classic_step: 70, self._classic_arrival: 8, self._departure: 3}

    def step(self) -> str:
        """Return the next step, which has to be followed by `learn`."""
        self._heartbeating = None
        self._step_count += 1
        if self._step_count % STEPS_OF_TIDE == 0:
            self._tide = self._random.choice(list(Tide))
        if 1 < self._step_count <= FIRST_TOPICS:
            return self._topics()
        return super().step()

    def learn(self, line: str, answer: str) -> None:
        """Take the answer to the last step."""
        super().learn(line, answer)
        response, _, answers, _ = answer.split(" | ")
        for kind, request_id, text in _ANSWER.findall(answers):
            client = self._waiting.pop(request_id, None)
            if client is None or self._random.random() < 0.03:
                continue
            if kind == "join":
                client.joined(JoinGroupResponse.decode(bytes.fromhex(text), 9))
            else:
                client.synced(SyncGroupResponse.decode(bytes.fromhex(text), 5))
        kind, _, request_id, *_ = [*line.split(" "), "", "", ""]
        if response.startswith("error ") and request_id in self._waiting:
            self._waiting.pop(request_id).refused(int(response.split(" ")[1]))
        if self._heartbeating is not None:
            self._learn_classic_heartbeat(self._heartbeating, response)
        self._classic_clients = [one for one in self._classic_clients if not one.is_fenced]

    def _learn_classic_heartbeat(self, client: ClassicClient, response: str) -> None:
        if response.startswith("error "):
            client.refused(int(response.split(" ")[1]))
            return
        code = HeartbeatResponse.decode(bytes.fromhex(response), 4).error_code
        if code:
            client.refused(code)

    def _elapsed(self) -> int:
        if self._random.random() < 0.1:
            return super()._elapsed()
        return self._random.choice(PERIODS_MS)

    def _learn_join(self, answer: str) -> None:
        """Leave the answer to `learn`."""

    def _join(self) -> str:
        if self._tide is Tide.CLASSIC:
            return self._departure()
        return super()._join()

    def _classic_arrival(self) -> str:
        random = self._random
        group_id = self._group_id()
        of_group = [one for one in self._classic_clients if one.group_id == group_id]
        consumers = [one for one in self._clients if one.group_id == group_id]
        is_full = len(of_group) >= CLASSIC_CLIENTS_MAX and not consumers
        if self._tide is Tide.CONSUMER or is_full:
            return self._classic_step()
        instance_id = random.choice(INSTANCES) if random.random() < 0.4 else None
        client = ClassicClient(group_id, instance_id)
        client.change(random)
        if consumers and random.random() < 0.6:
            # A consumer comes back with the classic protocol, often for the same topics.
            consumer = random.choice(consumers)
            client.instance_id = instance_id = consumer.instance_id
            if random.random() < 0.6:
                client.topics = consumer.names or []
        if instance_id is not None and random.random() < 0.3:
            # It knows the id of a member that it takes to be itself.
            known = re.findall(rf" member (\S+) {instance_id} ", self._state)
            client.member_id = random.choice([*known, ""])
        self._classic_clients.append(client)
        return self._join_of(client)

    def _departure(self) -> str:
        """Return a step in which a member leaves whose protocol is not on the rise."""
        random = self._random
        if self._clients and self._tide is not Tide.CONSUMER:
            client = random.choice(self._clients)
            if client.instance_id is not None and random.random() < 0.7:
                return self._classic_arrival()
            if client.epoch <= 0:
                self._clients.remove(client)
                return "commit"
            self._asking = client
            return self._line("consumer_heartbeat", 1, client.departure())
        if self._classic_clients:
            return self._leave_of(random.choice(self._classic_clients))
        return "commit"

    def _classic_step(self) -> str:
        """Return the next request of a classic consumer."""
        random = self._random
        if not self._classic_clients:
            return self._heartbeat() if self._tide is Tide.CONSUMER else self._classic_arrival()
        client = random.choice(self._classic_clients)
        match client.phase:
            case Phase.JOIN:
                return self._join_of(client)
            case Phase.SYNC:
                return self._sync_of(client)
            case Phase.JOINING | Phase.SYNCING:
                # It asks again when it has waited for long.
                if random.random() < 0.15:
                    return self._join_of(client)
                return f"time {self._now + random.choice((100, 1_000))}"
            case Phase.STABLE:
                return self._stable_step(client)

    def _stable_step(self, client: ClassicClient) -> str:
        random = self._random
        chance = random.random()
        if chance < 0.1:
            client.change(random)
            return self._join_of(client)
        if chance < 0.15:
            return self._sync_of(client)
        if chance < 0.2:
            return self._leave_of(client)
        self._heartbeating = client
        return self._line("heartbeat", 4, client.heartbeat(random))

    def _join_of(self, client: ClassicClient) -> str:
        version, request = client.join(self._random)
        line = self._line("join", version, request)
        self._waiting[str(self._count)] = client
        return line

    def _sync_of(self, client: ClassicClient) -> str:
        counts = {one.name: len(one.replicas) for one in self._metadata.topics.values()}
        line = self._line("sync", 5, client.sync(self._random, counts))
        self._waiting[str(self._count)] = client
        return line

    def _leave_of(self, client: ClassicClient) -> str:
        self._classic_clients.remove(client)
        return self._line("leave", 5, client.leave(self._random))

    def _member(self) -> tuple[str, str, int]:
        """Return the group, the id and the epoch of a member of either protocol, or nearly so."""
        random = self._random
        if self._classic_clients and random.random() < 0.5:
            client = random.choice(self._classic_clients)
            generation = client.generation - random.choice((0, 0, 0, 1, 2, -1))
            return client.group_id, client.member_id, generation
        return super()._member()
