"""Scripts about configurations: every key of every kind of resource, with good and bad values."""

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from tests.interop.differential.script import Fields, Script, Step, created, feature_level, topic
from tests.interop.differential.story import Chapter, Story

from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigType,
)

TOPIC, BROKER, LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
CONTROLLER: Final = "3000"
DEFINITIONS: Final[Mapping[int, Mapping[str, ConfigDefinition]]] = {
    TOPIC: TOPIC_CONFIGS,
    BROKER: BROKER_CONFIGS,
    CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    GROUP: GROUP_CONFIGS,
}
NAMES: Final[Mapping[int, Sequence[str]]] = {
    TOPIC: ("t1", "t2", "t1", "t2", "nowhere", "", "a b", "..", "x" * 250),
    BROKER: ("", "1", "2", "", "1", CONTROLLER, "77", "-1", "x", "2147483648"),
    CLIENT_METRICS: ("m1", "m2", "", "m 3"),
    GROUP: ("g1", "g2", "", "g 3"),
}
SPECIAL_BROKER_KEYS: Final = (
    *("min.insync.replicas", "min.insync.replicas", "cordoned.log.dirs", "log.retention.ms"),
    *("num.io.threads", "listener.name.controller.max.connections"),
    *("listener.name.controller.num.io.threads", "listener.name.controller.ssl.keystore.type"),
    "what.ever",
)
LONGEST_VALUE: Final = 32_767
CHECKED_TOGETHER: Final = frozenset(
    {"remote.storage.enable", "local.retention.ms", "local.retention.bytes"}
)
NUMBERS: Final = (
    *("0", "1", "-1", "-2", "5", "100", "1000", "60000", "1048576"),
    *("2147483647", "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808"),
    *(" 7 ", "+7", "007", "1.5", "0x10", "1_000", "", "x"),
)
FRACTIONS: Final = ("0", "0.5", "1", "1.5", "-0.1", "NaN", "Infinity", "1e-3", "0.5f", ".5", "x")
TRUTHS: Final = ("true", "false", "TRUE", " False ", "yes", "1", "")
WORDS: Final = (
    *("", " ", "x", "producer", "zstd", "gzip", "uncompressed", "CreateTime", "LogAppendTime"),
    *("classic", "earliest", "latest", "none", "by_duration:PT1H", "by_duration:-PT1H"),
    *("read_committed", "a,b"),
)
LISTS: Final = (
    *("", ",", "delete", "compact", "delete,compact", "compact, delete", "delete,", ",delete"),
    *("delete,,compact", "delete,delete", "vanish", "*", "none", "0:1,1:2", "0:1,x:2"),
    *("client_id=a.*", "client_id=[", "client_source_port=9", "what=x", "client_id", "org.apache."),
)
PATTERNS: Final[Mapping[ConfigType, Sequence[str]]] = {
    ConfigType.BOOLEAN: TRUTHS,
    ConfigType.INT: NUMBERS,
    ConfigType.SHORT: NUMBERS,
    ConfigType.LONG: NUMBERS,
    ConfigType.DOUBLE: FRACTIONS,
    ConfigType.LIST: LISTS,
}


def begin(story: Story) -> None:
    if story.chance(0.3):
        story.steps.append(feature_level("eligible.leader.replicas.version", 0, upgrade_type=2))
    for broker in (1, 2):
        story.start_broker(broker)
    story.steps.append(created(topic("t1", [[1, 2]]), topic("t2", [[2]])))
    story.topics.update({"t1": 1, "t2": 1})


def value_of(story: Story, definition: ConfigDefinition | None) -> str | None:
    """Draw a value for a key: often one that fits its type, the default, or nonsense."""
    draw = story.random.random()
    if draw < 0.03:
        return None
    if definition is None or draw < 0.12:
        return story.one_of((*WORDS, *NUMBERS, *LISTS))
    if draw < 0.3 and definition.default is not None:
        return definition.default
    return story.one_of(PATTERNS.get(definition.type, WORDS))


def harmless(story: Story, kind: int) -> Fields:
    """Draw a key that can be set to its default, which is sure to be taken."""
    definitions = DEFINITIONS[kind].values()
    safe = [each for each in definitions if each.default and each.name not in CHECKED_TOGETHER]
    drawn = story.one_of(safe)
    return {"name": drawn.name, "configOperation": SET, "value": drawn.default}


def operations(story: Story, kind: int) -> list[Fields]:
    """Draw operations on keys, of which one may be refused.

    Of several bad ones Kafka names the one that comes first in a hash table.
    """
    count = story.random.choice((0, 1, 1, 1, 2, 3))
    drawn = [harmless(story, kind) for _ in range(count)]
    if drawn and story.chance(0.85):
        drawn[story.random.randrange(count)] = operation(story, kind)
    return drawn


def key_of(story: Story, kind: int) -> str:
    """Draw a key of a kind of resource, seldom one of another kind or of none."""
    draw = story.random.random()
    if draw < 0.03:
        return story.one_of(("no.such.key", "", "retention.ms ", "a" * 300))
    if draw < 0.08:
        kind = story.one_of(list(DEFINITIONS))
    if kind == BROKER and draw < 0.25:
        return story.one_of(SPECIAL_BROKER_KEYS)
    if kind == TOPIC and draw < 0.25:
        return story.one_of(("min.insync.replicas", "cleanup.policy", "retention.ms"))
    return story.one_of(list(DEFINITIONS[kind]))


def operation(story: Story, kind: int) -> Fields:
    name = key_of(story, kind)
    definition = DEFINITIONS[kind].get(name)
    is_list = definition is not None and definition.type is ConfigType.LIST
    wanted = story.random.choices(
        (SET, DELETE, APPEND, SUBTRACT), (6, 2, 5, 4) if is_list else (10, 4, 1, 1)
    )[0]
    value = value_of(story, definition)
    if wanted in (APPEND, SUBTRACT) and value is None:
        value = "x"
    if wanted == DELETE and story.chance(0.8):
        value = None
    return {"name": name, "configOperation": wanted, "value": value}


def resource_of(story: Story) -> tuple[int, str]:
    """Draw a resource, seldom one of a kind that has no configurations."""
    if story.chance(0.03):
        return story.one_of((0, 1, 3, LOGGER, 64, 127, -1)), story.one_of(
            ("", "1", "t1", CONTROLLER)
        )
    kind = story.one_of((TOPIC, TOPIC, BROKER, BROKER, CLIENT_METRICS, GROUP))
    names = NAMES[kind]
    # The first names are the good ones.
    return kind, story.one_of(names[:2] if story.chance(0.7) else names)


def resources_with_operations(story: Story, counts: Sequence[int]) -> list[Fields]:
    """Draw resources and what is to be done with their keys; seldom one of them comes twice.

    Not one of an unknown type: AlterConfigs with two of those is never answered by real Kafka.
    """
    resources: list[Fields] = []
    for _ in range(story.one_of(counts)):
        kind, name = resource_of(story)
        configs = operations(story, kind if kind in DEFINITIONS else TOPIC)
        resources.append({"resourceType": kind, "resourceName": name, "configs": configs})
    if story.chance(0.05) and resources[0]["resourceType"] in DEFINITIONS:
        resources.append(resources[0])
    return resources


def values_of(drawn: Sequence[Fields]) -> list[Fields]:
    return [{"name": each["name"], "value": each["value"]} for each in drawn]


def alter_some(story: Story) -> None:
    resources = resources_with_operations(story, (1, 1, 1, 2, 3))
    body = {"resources": resources, "validateOnly": story.chance(0.1)}
    story.add("IncrementalAlterConfigs", body)


def one_operation(kind: int, name: str, key: str, operation_type: int, value: str | None) -> Fields:
    change = {"name": key, "configOperation": operation_type, "value": value}
    return {"resources": [{"resourceType": kind, "resourceName": name, "configs": [change]}]}


def set_long_value(story: Story) -> None:
    """Set a value that is as long as a request can carry, and append to it.

    It is one without complaints: ours cuts a message that would be too long for an answer.
    """
    value = "0:" + "1" * (LONGEST_VALUE - 2 - story.one_of((0, 3, 4, 5)))
    throttled = (TOPIC, "t1", "leader.replication.throttled.replicas")
    resource = story.one_of((throttled, (BROKER, "1", "log.dirs"), (BROKER, "1", "no.such.key")))
    for operation_type, text in ((SET, value), (APPEND, "2:2")):
        body = one_operation(*resource, operation_type, text)
        story.steps.append(Step("IncrementalAlterConfigs", 1, body))


def replace_all(story: Story) -> None:
    drawn = resources_with_operations(story, (1, 1, 1, 2))
    resources = [{**each, "configs": values_of(each["configs"])} for each in drawn]
    story.add("AlterConfigs", {"resources": resources, "validateOnly": story.chance(0.1)})


def describe(story: Story) -> None:
    resources: list[Fields] = []
    for _ in range(story.random.choice((1, 1, 2))):
        kind, name = resource_of(story)
        if (kind, name) == (LOGGER, CONTROLLER):
            # Which loggers there are is a matter of each program.
            name = "x"
        keys: list[str] | None = None
        if story.chance(0.6):
            keys = [key_of(story, kind if kind in DEFINITIONS else TOPIC) for _ in range(3)]
        resources.append({"resourceType": kind, "resourceName": name, "configurationKeys": keys})
    story.add("DescribeConfigs", {"resources": resources, "includeSynonyms": story.chance(0.7)})


def create_with_configs(story: Story) -> None:
    wanted = topic(story.new_name(), [[1]], configs=values_of(operations(story, TOPIC)))
    story.add("CreateTopics", {"topics": [wanted], "timeoutMs": 60_000})


KEYS: Final = tuple(
    (kind, key) for kind in (TOPIC, GROUP, CLIENT_METRICS, BROKER) for key in DEFINITIONS[kind]
)
GOOD_NAMES: Final = {TOPIC: "t1", BROKER: "1", CLIENT_METRICS: "m1", GROUP: "g1"}


def all_values_of_a_key(kind_of_script: str, seed: int) -> Script:
    """Return the script that sets one key to each of our values; the seed is the key's number."""
    story = Story(Random(f"{kind_of_script}-{seed}"))
    begin(story)
    kind, key = KEYS[seed % len(KEYS)]
    name, definition = GOOD_NAMES[kind], DEFINITIONS[kind][key]
    values = (definition.default, *PATTERNS.get(definition.type, WORDS), None)
    for value in dict.fromkeys(values):
        for operation_type in (SET, APPEND, SUBTRACT) if value is not None else (SET, DELETE):
            body = one_operation(kind, name, key, operation_type, value)
            story.add("IncrementalAlterConfigs", body)
    asked = {"resourceType": kind, "resourceName": name, "configurationKeys": [key]}
    story.add("DescribeConfigs", {"resources": [asked], "includeSynonyms": True})
    return Script(kind_of_script, seed, tuple(story.steps))


CHAPTERS: Final[Sequence[tuple[int, Chapter]]] = (
    (12, alter_some),
    (5, replace_all),
    (3, describe),
    (1, set_long_value),
    (3, create_with_configs),
)
