"""Scripts about topics: CreateTopics, CreatePartitions, DeleteTopics, good and bad."""

from collections.abc import Callable, Sequence
from typing import Final

from tests.interop.differential.script import TIMEOUT_MS, Fields, topic
from tests.interop.differential.story import BROKERS, NO_TOPIC, UNKNOWN_BROKER, Chapter, Story
from tests.interop.differential.view import uuid_of

LONGEST_NAME: Final = 249
BAD_NAMES: Final = (
    "",
    ".",
    "..",
    "a b",
    "a/b",
    "\u00e4",
    "x" * (LONGEST_NAME + 1),
    "__cluster_metadata",
    "a\x00b",
)
GOOD_NAMES: Final = ("__consumer_offsets", "x" * LONGEST_NAME, "a-b", "A.1", "...")
GOOD_CONFIGS: Final[Sequence[tuple[str, str | None]]] = (
    ("retention.ms", "1000"),
    ("cleanup.policy", "compact,delete"),
    ("unclean.leader.election.enable", "true"),
    ("min.insync.replicas", "2"),
    ("compression.type", "zstd"),
)
BAD_CONFIGS: Final[Sequence[tuple[str, str | None]]] = (
    ("retention.ms", "x"),
    ("no.such.key", "1"),
    ("min.insync.replicas", None),
    ("min.insync.replicas", "0"),
    ("cleanup.policy", "vanish"),
    ("", "1"),
)


def create(story: Story) -> None:
    """Create one to three topics with replicas of ours, and perhaps a bad one among them."""
    topics = [_good(story) for _ in range(story.random.randint(1, 3))]
    if story.chance(0.3):
        topics.insert(story.random.randrange(len(topics) + 1), _bad(story))
    if story.chance(0.05):
        topics.append(topics[0])
    is_trial = story.chance(0.12)
    if not is_trial:
        for one in topics:
            if "assignments" in one and one["name"] not in BAD_NAMES:
                story.topics[one["name"]] = len(one["assignments"])
    _create(story, topics, is_trial=is_trial)


def _create(story: Story, topics: list[Fields], *, is_trial: bool, is_placed: bool = False) -> None:
    body = {"topics": topics, "timeoutMs": TIMEOUT_MS, "validateOnly": is_trial}
    story.add("CreateTopics", body, is_placed=is_placed)


def create_bad(story: Story) -> None:
    topics = [_bad(story) for _ in range(story.random.randint(1, 4))]
    _create(story, topics, is_trial=story.chance(0.2), is_placed=True)
    _delete_named(story, [one["name"] for one in topics])


def create_placed(story: Story) -> None:
    """Create topics whose replicas the controller chooses, and delete them again."""
    names = [story.new_name() for _ in range(story.random.randint(1, 2))]
    topics = [
        {
            "name": name,
            "numPartitions": story.one_of((-1, 1, 2, 7)),
            "replicationFactor": story.one_of((-1, 1, 2, 3, 5)),
            "configs": _configs(story, GOOD_CONFIGS),
        }
        for name in names
    ]
    _create(story, topics, is_trial=story.chance(0.2), is_placed=True)
    if story.chance(0.3):
        _add_partitions(story, [_more(story, name) for name in names], is_placed=True)
    _delete_named(story, names)


def _good(story: Story) -> Fields:
    name = story.one_of(GOOD_NAMES) if story.chance(0.05) else story.new_name()
    size = story.one_of((1, 2, 2, 3, 3, 3))
    replicas = [story.replicas(at_least=size) for _ in range(story.random.randint(1, 3))]
    assignments = [each[:size] for each in replicas] if story.chance(0.95) else replicas
    return topic(name, assignments, configs=_configs(story, GOOD_CONFIGS))


def _configs(story: Story, choices: Sequence[tuple[str, str | None]]) -> list[Fields]:
    if story.chance(0.6):
        return []
    return [{"name": name, "value": value} for name, value in story.some(choices)]


def _bad(story: Story) -> Fields:
    return story.one_of(BAD_TOPICS)(story)


def _with_configs(story: Story) -> Fields:
    # One bad key: of several, real Kafka names the one that its hash table holds first.
    name, value = story.one_of(BAD_CONFIGS)
    configs = [*_configs(story, GOOD_CONFIGS[:3]), {"name": name, "value": value}]
    return topic(story.new_name(), [story.replicas()], configs=configs)


def _with_counts(story: Story) -> Fields:
    return {
        "name": story.new_name(),
        "numPartitions": story.one_of((0, -2, 1, -1, 2)),
        "replicationFactor": story.one_of((0, -2, 6, 32767)),
    }


def _with_assignments(story: Story) -> Fields:
    made = topic(story.new_name(), [story.replicas() for _ in range(2)])
    rows = made["assignments"]
    row = story.one_of(rows)
    match story.random.randrange(7):
        case 0:
            row["brokerIds"] = []
        case 1:
            row["brokerIds"] = [1, 1]
        case 2:
            row["brokerIds"] = [1, UNKNOWN_BROKER]
        case 3:
            rows[1]["brokerIds"] = [*rows[0]["brokerIds"], 5]
        case 4:
            row["partitionIndex"] = story.one_of((0, 1, 4, -1))
        case 5:
            made["numPartitions"] = 2
        case _:
            made["replicationFactor"] = 1
    return made


BAD_TOPICS: Final[Sequence[Callable[[Story], Fields]]] = (
    lambda story: topic(story.one_of(BAD_NAMES), [story.replicas()]),
    lambda story: topic(story.topic(), [story.replicas()]),
    lambda story: topic(story.one_of(("a.b", "a_b", "A_1", "..._")), [story.replicas()]),
    _with_configs,
    _with_counts,
    _with_assignments,
)


def create_partitions(story: Story) -> None:
    names = story.some(list(story.topics), at_least=1)[:2] or [NO_TOPIC]
    rows = [_more(story, name) for name in names]
    for row in rows:
        count = row["count"] - story.topics.get(row["name"], 1)
        row["assignments"] = [{"brokerIds": story.replicas()} for _ in range(max(count, 0))]
        if story.chance(0.15):
            row["assignments"].append({"brokerIds": story.one_of(([], [1, 1], [UNKNOWN_BROKER]))})
        if story.chance(0.7):
            size = story.random.randint(1, 3)
            row["assignments"] = [
                {"brokerIds": each["brokerIds"][:size]} for each in row["assignments"]
            ]
    _add_partitions(story, rows)


def create_partitions_badly(story: Story) -> None:
    rows: list[Fields] = [
        {"name": story.topic(), "count": story.one_of((-1, 0, 1, 2, 5, 50, 500))}
        for _ in range(story.random.randint(1, 3))
    ]
    if story.chance(0.3):
        rows.append(rows[0])
    body = {"topics": [row | {"assignments": None} for row in rows], "timeoutMs": TIMEOUT_MS}
    story.add("CreatePartitions", body, is_placed=True)
    # Some may have got partitions, on brokers that chance has chosen.
    _delete_named(story, sorted({row["name"] for row in rows}))


def _more(story: Story, name: str) -> Fields:
    count = story.topics.get(name, 1) + story.one_of((0, -1, 1, 1, 1, 2, 3))
    return {"name": name, "count": count, "assignments": None}


def _add_partitions(story: Story, rows: list[Fields], *, is_placed: bool = False) -> None:
    is_trial = story.chance(0.2)
    if not is_trial and not is_placed:
        story.topics.update({row["name"]: max(row["count"], 1) for row in rows})
    body = {"topics": rows, "timeoutMs": TIMEOUT_MS, "validateOnly": is_trial}
    story.add("CreatePartitions", body, is_placed=is_placed)


def delete(story: Story) -> None:
    names = [story.topic() for _ in range(story.random.randint(1, 2))]
    _delete(story, [{"name": name} if story.chance(0.5) else _by_id(name) for name in names], names)


def delete_badly(story: Story) -> None:
    """Delete with names and ids that do not belong together, and what is not there."""
    name = story.topic()
    unknown = {"name": None, "topicId": uuid_of(3, 3)}
    rows = [
        _by_id(NO_TOPIC),
        unknown,
        {**_by_id(name), "name": name},
        *({"name": each} for each in (NO_TOPIC, "a b", "")),
        _by_id(name),
        {"name": name},
        unknown,
    ]
    _delete(story, story.some(rows), [name])


def _by_id(name: str) -> Fields:
    return {"name": None, "topicId": f"$topic:{name}"}


def _delete_named(story: Story, names: Sequence[str]) -> None:
    _delete(story, [{"name": name} for name in names], names)


def _delete(story: Story, rows: list[Fields], names: Sequence[str]) -> None:
    story.has_deleted = True
    for name in names:
        story.topics.pop(name, None)
    story.add("DeleteTopics", {"topics": rows, "topicNames": list(names), "timeoutMs": TIMEOUT_MS})


def begin(story: Story) -> None:
    """Have two to five brokers in service, and perhaps one that stays fenced."""
    for broker in sorted(story.some(BROKERS, at_least=2)):
        story.start_broker(broker)
    if story.chance(0.4):
        body = {"brokerId": 1, "brokerEpoch": "$epoch:1", "wantFence": True}
        story.add("BrokerHeartbeat", {**body, "currentMetadataOffset": 0})


DETERMINED_CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (6, create),
    (4, create_bad),
    (4, create_partitions),
    (3, delete),
    (2, delete_badly),
)
CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    *DETERMINED_CHAPTERS,
    (3, create_placed),
    (2, create_partitions_badly),
)
