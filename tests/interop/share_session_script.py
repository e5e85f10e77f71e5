"""Random steps for share sessions: clients that know their epochs, and clients that err."""

from random import Random
from typing import Final

from tests.interop.share_session_driver import NONE, Driver

from kvorum.broker.share_session.session import EPOCH_MAX, ShareSession, ShareSessionKey
from kvorum.broker.share_session.topic_id_partition import TopicIdPartition

GROUPS: Final = ("orders", "bills")
MEMBERS: Final = ("anne", "bert", "carl")
CONNECTIONS: Final = ("c1", "c2", "c3", "c4")
TOPICS: Final = ("1:{}:one", "2:{}:two", "3:{}")
"""The third topic is unknown."""
PARTITIONS: Final = 3
EPOCHS: Final = (-2, -1, 0, 1, 2, EPOCH_MAX)


class Script:
    """Makes up steps by the sessions that there are."""

    def __init__(self, random: Random, driver: Driver) -> None:
        self._random = random
        self._driver = driver

    def step(self) -> str:
        random = self._random
        kind = random.random()
        if kind < 0.4:
            return self._fetch()
        if kind < 0.75 and self._driver.contexts:
            return self._respond()
        if kind < 0.78 and self._driver.contexts:
            return f"throttle {self._context()} {random.randrange(100)}"
        if kind < 0.88:
            key = self._key()
            return f"acknowledge {key.group_id} {key.member_id} {self._epoch(key)}"
        if kind < 0.92:
            key = self._key()
            return f"remove {key.group_id} {key.member_id}"
        if kind < 0.98:
            return f"disconnect {random.choice(CONNECTIONS)}"
        if random.random() < 0.1:
            return "remove-all"
        key = self._key()
        return f"epoch {key.group_id} {key.member_id} {EPOCH_MAX - 1}"

    def _fetch(self) -> str:
        random = self._random
        key = self._key()
        has_acknowledgements = "1" if random.random() < 0.1 else "0"
        return " ".join(
            [
                "fetch",
                key.group_id,
                key.member_id,
                str(self._epoch(key)),
                random.choice(CONNECTIONS),
                has_acknowledgements,
                self._partitions(may_repeat=random.random() < 0.05),
                self._partitions(may_repeat=True),
            ]
        )

    def _key(self) -> ShareSessionKey:
        return ShareSessionKey(self._random.choice(GROUPS), self._random.choice(MEMBERS))

    def _epoch(self, key: ShareSessionKey) -> int:
        session: ShareSession | None = self._driver.cache.get(key)
        if session is None or self._random.random() < 0.2:
            return self._random.choice((0, 0, 0, *EPOCHS))
        return session.epoch

    def _partitions(self, *, may_repeat: bool) -> str:
        random = self._random
        every = [topic.format(index) for topic in TOPICS for index in range(PARTITIONS)]
        count = random.choice((0, 0, 1, 2, 4))
        found = random.choices(every, k=count) if may_repeat else random.sample(every, count)
        return ",".join(found) or NONE

    def _context(self) -> int:
        count = len(self._driver.contexts)
        return count - 1 if self._random.random() < 0.8 else self._random.randrange(count)

    def _respond(self) -> str:
        random = self._random
        index = self._context()
        partitions = list(self._driver.contexts[index].partitions)
        random.shuffle(partitions)
        chosen = partitions[: random.randrange(len(partitions) + 1)]
        read = [
            f"{_text(one)}/{random.choice((0, 0, 0, 3, 100))}/{random.choice((0, 0, 5))}"
            for one in chosen
        ]
        return f"respond {index} {random.choice((1, 2))} {','.join(read) or NONE}"


def _text(partition: TopicIdPartition) -> str:
    number = int.from_bytes(partition.topic_id, "big")
    name = "" if partition.topic is None else f":{partition.topic}"
    return f"{number}:{partition.partition}{name}"
