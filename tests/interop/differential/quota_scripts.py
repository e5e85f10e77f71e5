"""Scripts about client quotas, SCRAM credentials and producer ids."""

import base64
from collections.abc import Sequence
from typing import Final

from tests.interop.differential.script import INFINITE, Fields
from tests.interop.differential.story import Chapter, Story

USERS: Final[Sequence[str | None]] = ("alice", "bob", None)
CLIENTS: Final[Sequence[str | None]] = ("app", "job", None)
ADDRESSES: Final[Sequence[str | None]] = ("10.0.0.1", "::1", "10.0.0.2", None)
STRANGE_PARTS: Final[Sequence[tuple[str, str | None]]] = (
    ("user", ""),
    ("client-id", ""),
    ("ip", ""),
    ("ip", "256.0.0.1.2"),
    ("ip", "10.0.0.1/8"),
    ("group", "g"),
    ("", "x"),
    ("User", "alice"),
)
CLIENT_KEYS: Final = (
    "producer_byte_rate",
    "consumer_byte_rate",
    "request_percentage",
    "controller_mutation_rate",
)
IP_KEY: Final = "connection_creation_rate"
GOOD_VALUES: Final = (1.0, 2.0, 1024.0, 0.5, 1e6)
STRANGE_VALUES: Final = (
    0.0,
    -1.0,
    0.25,
    1.0000001,
    1.00001,
    2147483647.0,
    2147483648.0,
    9.223372036854775e18,
    9.223372036854775807e18,
    9.3e18,
    1e300,
    float("inf"),
    5e-324,
)
AMPLE: Final = {"request_percentage": 4096.0, "controller_mutation_rate": 100_000.0}
SHA_256, SHA_512 = 1, 2


def begin(story: Story) -> None:
    for broker in (1, 2):
        story.start_broker(broker)


def entity(story: Story) -> list[Fields]:
    parts: list[tuple[str, str | None]] = []
    draw = story.random.random()
    if draw < 0.1:
        parts = [story.one_of(STRANGE_PARTS)]
        # The place of an unknown type among others depends on its hash.
        if parts[0][0] in ("user", "client-id", "ip") and story.chance(0.5):
            parts.insert(story.random.randrange(2), ("user", story.one_of(USERS)))
    elif draw < 0.25:
        parts = [("ip", story.one_of(ADDRESSES))]
        if story.chance(0.1):
            parts.append(("client-id", "app"))
    elif draw > 0.97:
        parts = []
    else:
        both = ("user", "client-id")
        kinds = story.one_of((both[:1], both[1:], both, both[::-1]))
        drawn = {"user": story.one_of(USERS), "client-id": story.one_of(CLIENTS)}
        parts = [(kind, drawn[kind]) for kind in kinds]
    return [{"entityType": kind, "entityName": name} for kind, name in parts]


def quota_operations(story: Story, *, is_address: bool) -> list[Fields]:
    """Draw what is to be done with the quotas of one entity; of several one may be refused."""
    keys = (IP_KEY,) if is_address else CLIENT_KEYS
    drawn = [
        {"key": key, "value": 0.0, "remove": True}
        if story.chance(0.3)
        else {"key": key, "value": story.one_of((1.0, 2.0, 1024.0)), "remove": False}
        for key in story.some(keys)
    ]
    if story.chance(0.4):
        key = story.one_of((*keys, IP_KEY, "no_such_rate", ""))
        odd = {"key": key, "remove": story.chance(0.2)}
        drawn = [each for each in drawn if each["key"] != key]
        drawn.append({**odd, "value": story.one_of((*GOOD_VALUES, *STRANGE_VALUES))})
    if story.chance(0.05):
        drawn.append(drawn[0])
    return drawn


def spare_ourselves(entry: Fields) -> None:
    """Let no client have a quota that the requests of a script could exceed.

    Request quotas are not kept here, and by how much another one is exceeded is a matter of time.
    """
    for operation in entry["ops"]:
        ample = AMPLE.get(operation["key"], 0.0)
        if 0.0 < operation["value"] < ample:
            operation["value"] = ample


def alter_quotas(story: Story) -> None:
    entries: list[Fields] = []
    for _ in range(story.random.choice((1, 1, 1, 2, 3))):
        who = entity(story)
        is_address = any(part["entityType"] == "ip" for part in who)
        entries.append({"entity": who, "ops": quota_operations(story, is_address=is_address)})
    if story.chance(0.1):
        entries.append({**entries[0], "ops": quota_operations(story, is_address=False)})
    for entry in entries:
        spare_ourselves(entry)
    story.add("AlterClientQuotas", {"entries": entries, "validateOnly": story.chance(0.1)})


def upsertion(story: Story) -> Fields:
    mechanism = story.one_of((SHA_256, SHA_256, SHA_512, SHA_512, SHA_512, 0, 3, -1))
    size = 64 if mechanism == SHA_512 else 32
    return {
        "name": story.one_of(("alice", "bob", "carol", "dave", "")),
        "mechanism": mechanism,
        "iterations": story.one_of((4096, 8192, 16384, 4095, 16385, 0, -1, 2147483647)),
        "salt": random_bytes(story, story.one_of((0, 8, 30))),
        "saltedPassword": random_bytes(story, size if story.chance(0.9) else 7),
    }


def random_bytes(story: Story, size: int) -> str:
    return base64.b64encode(story.random.randbytes(size)).decode()


def deletion(story: Story) -> Fields:
    return {
        "name": story.one_of(("alice", "bob", "carol", "dave", "")),
        "mechanism": story.one_of((SHA_256, SHA_256, SHA_512, SHA_512, 0, 3)),
    }


def alter_credentials(story: Story) -> None:
    counts = story.one_of(((1, 0), (1, 0), (0, 1), (1, 1), (2, 1), (2, 2), (0, 0), (3, 0)))
    upsertions = [upsertion(story) for _ in range(counts[0])]
    deletions = [deletion(story) for _ in range(counts[1])]
    story.add("AlterUserScramCredentials", {"upsertions": upsertions, "deletions": deletions})


def allocate_ids(story: Story) -> None:
    """Ask for producer ids, seldom as one who is not entitled to them."""
    broker = story.broker()
    epoch: object = f"$epoch:{broker}" if story.chance(0.85) else story.one_of((-1, 0, INFINITE))
    story.add("AllocateProducerIds", {"brokerId": broker, "brokerEpoch": epoch})


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (10, alter_quotas),
    (8, alter_credentials),
    (2, allocate_ids),
)
