"""The page about configuration, written from the tables of keys, is current.

`python -m tests.unit.node.test_configuration_page` writes it.
"""

from collections.abc import Iterable, Iterator

from tests.support.source_tree import ROOT

from kvorum.metadata.config_definitions import BROKER_CONFIGS, TOPIC_CONFIGS
from kvorum.metadata.config_definitions.synonym_rows import TOPIC_SYNONYMS
from kvorum.node.config.known import KEYS_IN_USE, TOPIC_KEYS_IN_USE
from kvorum.node.config.own_settings import OWN_DEFINITIONS
from kvorum.node.config.values import NODE_CONFIGS

PAGE = ROOT / "docs" / "configuration.md"
HEAD = """\
# Configuration

A node reads a Java properties file with Kafka's own keys (`kvorum server FILE`, and
`--override key=value` on top of it). Defaults, limits, checks and messages are those of Kafka
4.4.0. A key that Kafka knows and kvorum does not act on is accepted and named once at start-up; a
key that neither knows is a warning. Values of both are kept, and shown by DescribeConfigs.

This page is written by `python -m tests.unit.node.test_configuration_page`: the keys that the
settings classes are read from, as the tables in `kvorum.metadata.config_definitions` define them.

## What differs from Kafka

- Only PLAINTEXT is spoken: a listener mapped to SSL or SASL is refused at start-up, and so is such
  a controller listener in the file of a broker, which would connect to it.
  `kvorum storage` formats and inspects the directories of such a node all the same.
- The policies (`create.topic.policy.class.name`, `alter.config.policy.class.name`) are Python
  classes, described in `kvorum.controller.policies`. Other class names are taken as text.
- `authorizer.class.name` names Kafka's StandardAuthorizer
  (`org.apache.kafka.metadata.authorizer.StandardAuthorizer`), whose decisions kvorum makes
  itself; no other authorizer can be named. Its own keys are Kafka's: `super.users`, users
  between semicolons, and `allow.everyone.if.no.acl.found`.
- A node raises its limit of open files (`ulimit -n`) to the hard one. `max.connections` is lowered
  to what that allows, less 128 for everything else: three quarters of that on a broker, whose logs
  have the rest.
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
