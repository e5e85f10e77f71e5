"""Configuration values and classes of settings: what is read, refused and used, and their page.

`python -m tests.unit.node.test_config_values` writes the page about configuration.
"""

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.source_tree import ROOT, python_files
from tests.unit.node.properties import BOTH

from kvorum.controller.controller_mutation_quota import MutationQuotas
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    TOPIC_CONFIGS,
    ConfigDefinition,
    ConfigValue,
    InvalidConfigError,
    ValueOf,
    convert_to_text,
    default_value,
    keys_of,
    parse_value,
    read_settings,
    topic_defaults,
    validate_topic_configs,
)
from kvorum.metadata.config_definitions.settings import keyed_fields
from kvorum.metadata.config_definitions.synonym_rows import TOPIC_SYNONYMS
from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.node.config.known import KEYS_IN_USE, SETTINGS, TOPIC_KEYS_IN_USE
from kvorum.node.config.listeners import ListenerKeys
from kvorum.node.config.node_config import with_id_synonyms
from kvorum.node.config.own_settings import OWN_DEFINITIONS
from kvorum.node.config.values import NODE_CONFIGS, NodeValues
from kvorum.raft.config import RaftConfig
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig, TopicSegmentConfig
from kvorum.wire.java_text import java_double_text, parse_java_double, parse_java_integer

ALL = [
    *TOPIC_CONFIGS.values(),
    *BROKER_CONFIGS.values(),
    *GROUP_CONFIGS.values(),
    *CLIENT_METRICS_CONFIGS.values(),
]
PAGE = ROOT / "docs" / "configuration.md"
HEAD = """\
# Configuration

A node reads a Java properties file with Kafka's own keys (`kvorum server FILE`, and
`--override key=value` on top of it). Defaults, limits, checks and messages are those of Kafka
4.4.0. A key that Kafka knows and kvorum does not act on is accepted and named once at start-up; a
key that neither knows is a warning. Values of both are kept, and shown by DescribeConfigs.

This page is written by `python -m tests.unit.node.test_config_values`: the keys that the
settings classes are read from, as the tables in `kvorum.metadata.config_definitions` define them.

## What differs from Kafka

- SASL is PLAIN, whose users are those of `sasl.jaas.config` of the listener and mechanism,
  SCRAM-SHA-256 and SCRAM-SHA-512, whose users are in the metadata, and OAUTHBEARER. Nodes log in at
  others by each of these, with `username` and `password` of the same key, or with tokens of
  OAUTHBEARER. Refused at start-up are other mechanisms (also GSSAPI, the default), callback
  handlers of one's own, a login without `username` and `password` or without a token, and SCRAM
  between the voters of `controller.quorum.voters`, which could not elect a leader (as in Kafka). A
  JAAS file of the JVM is not read.
- Tokens of OAUTHBEARER are verified where `sasl.server.callback.handler.class` of the listener and
  mechanism is Kafka's OAuthBearerValidatorCallbackHandler, by the keys at a URL or in a file of
  this node, whose URL has to be one of `kvorum.sasl.oauthbearer.allowed.urls` (in Kafka a property
  of the JVM), and with the extra `security`. Without that class they are not verified at all, which
  is for tests. `kvorum storage` formats and inspects the directories of such a node all the same.
- Tokens to log in with are written by the node itself, unsecured, by the options `unsecuredLogin…`
  of `sasl.jaas.config`. With Kafka's OAuthBearerLoginCallbackHandler in
  `sasl.login.callback.handler.class` of the listener and mechanism they are had at
  `sasl.oauthbearer.token.endpoint.url`, by client credentials or out of a file; that URL has to be
  one of `kvorum.sasl.oauthbearer.allowed.urls` as well. Commands and streams have the same keys.
- SSL needs the extra `security`, which `make run` installs (`pip install './kvorum[security]'`).
  Stores are PEM or PKCS12, the latter also under the type JKS; Java's own form JKS is refused.
  Stores are renewed without a restart: files that were replaced, and keys of stores with a
  listener's prefix, have an effect with the next change of the dynamic values of that node
  (`kafka-configs --entity-type brokers --entity-name ID --alter`). Of the suites of TLS 1.3,
  `ssl.cipher.suites` has all three or none.
- The policies (`create.topic.policy.class.name`, `alter.config.policy.class.name`) are Python
  classes, described in `kvorum.controller.policies`. Other class names are taken as text.
- `authorizer.class.name` names Kafka's StandardAuthorizer
  (`org.apache.kafka.metadata.authorizer.StandardAuthorizer`), whose decisions kvorum makes
  itself; no other authorizer can be named. Its own keys are Kafka's: `super.users`, users
  between semicolons, and `allow.everyone.if.no.acl.found`. Its log is Kafka's,
  `kafka.authorizer.logger`: refusals are in a node's log at the level info, permissions as well
  where `kvorum.log.level` is debug.
- `group.consumer.assignors` has Kafka's `uniform` and `range`, and `group.share.assignors` its
  `simple`, by name or by class. Other classes are refused: they are Java.
- A node raises its limit of open files (`ulimit -n`) to the hard one. `max.connections` is lowered
  to what that allows, less 128 for everything else: three quarters of that on a broker, whose logs
  have the rest. An eighth of the places is for the listener between brokers alone if it has no
  clients of its own, and on a node of both roles an eighth is for the controller's.
- Of several faults in one file, kvorum may name another one first.
- The documentation that DescribeConfigs carries is our own line on each key, where there is one.
"""
QUOTAS = """\
## Client quotas

Set while the nodes run (`kafka-configs.sh --alter --entity-type users|clients|ips`), kept in the
metadata, and in force on every broker once it has read the change. The most specific entity counts:
a user's client id, a user, then client ids; names before defaults, as in Kafka.

| key | of | meaning |
|---|---|---|
| `producer_byte_rate` | users, client ids, both | Bytes of Produce requests a second and broker. |
| `consumer_byte_rate` | users, client ids, both | Bytes of Fetch responses a second and broker. |
| `request_percentage` | users, client ids, both | Share of the process's one event loop. |
| `controller_mutation_rate` | users, client ids, both | Partitions created and deleted a second. |
| `connection_creation_rate` | addresses | New connections a second and node. |
"""


def test_every_default_is_within_its_own_limits() -> None:
    for definition in ALL:
        if definition.default is not None:
            assert parse_value(definition, definition.default) == default_value(definition)
            assert convert_to_text(default_value(definition)) == definition.default


def test_a_key_without_default_is_asked_for() -> None:
    required = {definition.name for definition in ALL if definition.is_required}
    assert required == {"process.roles", "node.id", "controller.listener.names"}
    for name in required:
        with pytest.raises(InvalidConfigError, match=f'"{name}" which has no default value'):
            default_value(BROKER_CONFIGS[name])


@given(st.sampled_from(ALL), st.text(max_size=40))
def test_any_text_is_read_or_refused_by_name(definition: ConfigDefinition, text: str) -> None:
    with suppress(InvalidConfigError):
        parse_value(definition, text)


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_written_integer_is_read_back(number: int) -> None:
    assert parse_java_integer(str(number), bits=64) == number


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_an_integer_outside_of_its_width_is_refused(bits: int) -> None:
    limit = 1 << (bits - 1)
    assert parse_java_integer(str(-limit), bits=bits) == -limit
    for number in (limit, -limit - 1):
        with pytest.raises(ValueError, match=str(abs(number))):
            parse_java_integer(str(number), bits=bits)


@pytest.mark.parametrize("text", ["", "-", "1_000", " 1", "1 ", "0x10", "1.0", "9" * 100_000])
def test_what_java_takes_for_no_integer_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any message will do
        parse_java_integer(text, bits=64)


@given(st.floats(allow_nan=False))
def test_a_written_number_is_read_back_bit_by_bit(number: float) -> None:
    again = parse_java_double(java_double_text(number))
    assert struct.pack(">d", again) == struct.pack(">d", number)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (-1e-323, "-9.9E-324"),
        (2e23, "2.0E23"),
        (math.inf, "Infinity"),
    ],
)
def test_numbers_are_written_as_java_writes_them(number: float, text: str) -> None:
    assert java_double_text(number) == text


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("foo", "1", "Unknown topic config name: foo"),
        (
            "segment.bytes",
            "x",
            "Invalid value x for configuration segment.bytes: Not a number of type INT",
        ),
        (
            "segment.bytes",
            "1",
            "Invalid value 1 for configuration segment.bytes: Value must be at least 1048576",
        ),
        (
            "min.cleanable.dirty.ratio",
            "2",
            (
                "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no "
                "more than 1"
            ),
        ),
        (
            "preallocate",
            "yes",
            (
                "Invalid value yes for configuration preallocate: Expected value to be either true "
                "or false"
            ),
        ),
        (
            "cleanup.policy",
            "shred",
            (
                "Invalid value shred for configuration cleanup.policy: String must be one of: "
                "compact, delete"
            ),
        ),
        (
            "compression.type",
            "rar",
            (
                "Invalid value rar for configuration compression.type: String must be one of: "
                "uncompressed, zstd, lz4, snappy, gzip, producer"
            ),
        ),
        (
            "remote.storage.enable",
            "true",
            (
                "Tiered Storage functionality is disabled in the broker. Topic cannot be "
                "configured with remote log storage."
            ),
        ),
    ],
)
def test_a_topics_bad_value_is_refused_in_kafkas_words(name: str, text: str, message: str) -> None:
    with pytest.raises(InvalidConfigError) as refusal:
        validate_topic_configs({name: text}, existing={}, defaults=topic_defaults({}))
    assert refusal.value.message == message


def milliseconds(seconds: int) -> int:
    return seconds * 1000


class Windows(NamedTuple):
    number: Annotated[int, "window.num"]
    ms: Annotated[int, "window.seconds", milliseconds]


@dataclass(frozen=True)
class Component:
    directory: Annotated[str, "dirs", "dir"]
    limit: Annotated[int, "limit.min", "limit.max", max]
    windows: Windows
    name: str
    is_quick: bool = True


def test_fields_have_the_values_of_their_keys() -> None:
    values: Mapping[str, ConfigValue] = {
        "dirs": None,
        "dir": "/d",
        "limit.min": 1,
        "limit.max": 2,
        "window.num": 0,
        "window.seconds": 3,
    }
    assert keys_of(Component) == values.keys()
    found = read_settings(Component, values.__getitem__, name="x")
    assert found == Component("/d", 2, Windows(0, 3000), "x")


def test_a_field_that_is_neither_read_nor_given_is_missed() -> None:
    with pytest.raises(TypeError, match="name"):
        read_settings(Component, lambda _: 1)


def default_of(key: str) -> ConfigValue:
    definition = TOPIC_CONFIGS.get(key) or NODE_CONFIGS[key]
    return None if definition.is_required else default_value(definition)


@pytest.mark.parametrize(
    "settings",
    [
        CleanupConfig,
        GroupCoordinatorSettings,
        LogConfig,
        MutationQuotas,
        RaftConfig,
        TokenSettings,
        TopicSegmentConfig,
    ],
)
def test_the_defaults_of_a_class_are_those_of_its_keys(settings: type) -> None:
    assert settings() == read_settings(settings, default_of)


def read_fields(settings: type, value_of: ValueOf) -> Iterator[tuple[str, Any, object]]:
    """Yield name, type and value of each field that is read, those of inner classes too."""
    hints = get_type_hints(settings, include_extras=True)
    for name, field in keyed_fields(settings).items():
        if get_origin(hints[name]) is Annotated:
            yield name, get_args(hints[name])[0], field.read(value_of)
        else:
            yield from read_fields(hints[name], value_of)


def node_fields(classes: Iterable[type]) -> Iterator[tuple[str, Any, object]]:
    values = NodeValues(with_id_synonyms(BOTH))
    for settings in classes:
        yield from read_fields(settings, values.value_of)


def test_values_are_of_the_type_of_their_field() -> None:
    for name, hint, value in (*read_fields(TopicLogConfig, default_of), *node_fields(SETTINGS)):
        hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        kinds = tuple(get_origin(each) or each for each in hints)
        assert isinstance(value, kinds), name
        assert (bool in kinds) == isinstance(value, bool), name


def test_the_listed_classes_are_those_that_are_read() -> None:
    source = "".join(file.text for file in python_files("server"))
    of_components = {settings.__name__ for settings in SETTINGS} - {"ListenerKeys", "NodeConfig"}
    # These may change while a node runs.
    of_components.discard("DeadLetterQueueSettings")
    # The settings of TLS and SASL are read for one listener after the other.
    of_components -= {
        *("MechanismSettings", "MechanismsBetweenNodes", "SaslSettings", "SslSettings"),
        "OAuthLoginSettings",
    }
    assert {*re.findall(r"config\.read\(\s*(\w+)", source)} == of_components


def test_every_setting_is_used_outside_of_the_configuration_itself() -> None:
    fields = [
        *read_fields(TopicLogConfig, default_of),
        *node_fields(set(SETTINGS) - {ListenerKeys}),
    ]
    source = "".join(
        file.text for file in python_files("server", "storage") if "config" not in file.path.parts
    )
    assert [name for name, *_ in fields if f".{name}" not in source] == []


def rows(names: Iterable[str]) -> Iterator[str]:
    for name in sorted(names):
        definition = NODE_CONFIGS[name]
        default = "required" if definition.is_required else code(definition.default)
        yield f"| `{name}` | {default} | {definition.documentation} |"


def topic_default_keys() -> dict[str, str]:
    """Each broker key that is nothing but the default of a topic key, with that key."""
    return {
        name: topic_key
        for topic_key in TOPIC_KEYS_IN_USE
        for name, _ in TOPIC_SYNONYMS.get(topic_key, ())
        if BROKER_CONFIGS[name].documentation is None
    }


def topic_rows() -> Iterator[str]:
    for name, topic_key in sorted(topic_default_keys().items()):
        meaning = TOPIC_CONFIGS[topic_key].documentation
        yield f"| `{name}` | {code(BROKER_CONFIGS[name].default)} | `{topic_key}` | {meaning} |"


def code(text: str | None) -> str:
    if text is None:
        return "not set"
    return f"`{text}`" if text else "empty"


def page() -> str:
    own = {each.name for each in OWN_DEFINITIONS}
    return "\n".join(
        (
            HEAD,
            "## Keys of a node",
            "",
            "| key | default | meaning |",
            "|---|---|---|",
            *rows(KEYS_IN_USE - topic_default_keys().keys() - own),
            "",
            "## Keys of kvorum's own",
            "",
            "| key | default | meaning |",
            "|---|---|---|",
            *rows(own),
            "",
            "## Defaults of a topic's keys",
            "",
            "The value of a topic's key where the topic does not set it. Hours and minutes become",
            "milliseconds; of several keys for one, the finest that is set counts.",
            "",
            "| key | default | topic key | meaning |",
            "|---|---|---|---|",
            *topic_rows(),
            "",
            QUOTAS.rstrip(),
            "",
        )
    )


def test_the_page_is_what_the_tables_say() -> None:
    text = page()
    assert PAGE.read_text() == text
    assert "None" not in text


if __name__ == "__main__":
    PAGE.write_text(page())
