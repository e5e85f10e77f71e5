"""What the configuration page says is acted on is looked at by somebody."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import kvorum.node.config
from kvorum.node.config import (
    BrokerSettings,
    MetadataLogSettings,
    NetworkSettings,
    QuorumSettings,
    SecuritySettings,
    TopicSettings,
)

CONFIG = Path(kvorum.node.config.__file__).parent
SERVER = CONFIG.parents[1]


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
