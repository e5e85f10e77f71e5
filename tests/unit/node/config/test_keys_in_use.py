"""The keys that the configuration page calls in use are read."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import kvorum.node.config
from kvorum.metadata.config_definitions import TOPIC_CONFIGS, broker_synonyms, topic_synonym
from kvorum.node.config import (
    KEYS_IN_USE,
    BrokerSettings,
    MetadataLogSettings,
    NetworkSettings,
    QuorumSettings,
    SecuritySettings,
    TopicSettings,
)
from kvorum.node.config.known import TOPIC_KEYS_WITHOUT_EFFECT

CONFIG = Path(kvorum.node.config.__file__).parent
SERVER = CONFIG.parents[1]


def test_a_key_is_in_use_if_and_only_if_code_names_it() -> None:
    source = "".join(
        path.read_text()
        for path in SERVER.rglob("*.py")
        if not {"config_definitions", "inspection"} & {*path.parts} and path.name != "known.py"
    )
    of_topics = {name for name in TOPIC_CONFIGS if topic_synonym(name) is not None}
    unread = {name for name in of_topics if f'"{name}"' not in source}
    assert unread == TOPIC_KEYS_WITHOUT_EFFECT
    stand_ins = {one for name in of_topics for one in broker_synonyms(topic_synonym(name) or "")}
    assert {name for name in KEYS_IN_USE - stand_ins if f'"{name}"' not in source} == set()


def test_every_setting_is_read_outside_of_the_configuration_itself() -> None:
    source = "".join(
        path.read_text() for path in SERVER.rglob("*.py") if CONFIG not in path.parents
    )
    groups = (
        BrokerSettings,
        MetadataLogSettings,
        NetworkSettings,
        QuorumSettings,
        SecuritySettings,
        TopicSettings,
    )
    unread = [
        f"{group.__name__}.{field.name}"
        for group in groups
        for field in fields(group)
        if f".{field.name}" not in source
    ]
    assert unread == []
