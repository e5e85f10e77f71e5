"""Settings classes: what they are read from, and that what they have is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import UnionType
from typing import Annotated, NamedTuple, get_args, get_origin, get_type_hints

import pytest

import kvorum.node.config
from kvorum.metadata.config_definitions import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigValue,
    ValueOf,
    default_value,
    keys_of,
    read_settings,
)
from kvorum.metadata.config_definitions.settings import keyed_fields
from kvorum.metadata.config_definitions.synonym_rows import TOPIC_SYNONYMS
from kvorum.node.config import (
    KEYS_IN_USE,
    BrokerSettings,
    MetadataLogSettings,
    NetworkSettings,
    QuorumSettings,
    SecuritySettings,
    TopicSettings,
)
from kvorum.node.config.known import TOPIC_KEYS_IN_USE
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig

CONFIG = Path(kvorum.node.config.__file__).parent
SERVER = CONFIG.parents[1]


class Windows(NamedTuple):
    number: Annotated[int, "window.num"]
    ms: Annotated[int, "window.seconds", lambda seconds: seconds * 1000]


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
    return default_value(TOPIC_CONFIGS.get(key) or BROKER_CONFIGS[key])


@pytest.mark.parametrize("settings", [CleanupConfig, LogConfig])
def test_the_defaults_of_a_class_are_those_of_its_keys(settings: type) -> None:
    assert settings() == read_settings(settings, default_of)


def read_fields(settings: type, value_of: ValueOf) -> Iterator[tuple[str, object, object]]:
    """Yield name, type and value of each field that is read, those of inner classes too."""
    hints = get_type_hints(settings, include_extras=True)
    for name, field in keyed_fields(settings).items():
        if get_origin(hints[name]) is Annotated:
            yield name, get_args(hints[name])[0], field.read(value_of)
        else:
            yield from read_fields(hints[name], value_of)


def test_values_are_of_the_type_of_their_field() -> None:
    for name, hint, value in read_fields(TopicLogConfig, default_of):
        hints = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        kinds = tuple(get_origin(each) or each for each in hints)
        assert isinstance(value, kinds), name
        assert (bool in kinds) == isinstance(value, bool), name


def test_a_key_is_in_use_only_if_code_names_it() -> None:
    source = "".join(
        path.read_text()
        for path in SERVER.rglob("*.py")
        if not {"config_definitions", "inspection"} & {*path.parts} and path.name != "known.py"
    )
    stand_ins = {name for key in TOPIC_KEYS_IN_USE for name, _ in TOPIC_SYNONYMS.get(key, ())}
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
