"""Settings classes: what they are read from, and that what they have is used."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

import pytest
from tests.support.source_tree import python_files
from tests.unit.node.config.properties import BOTH

from kvorum.controller.controller_mutation_quota import MutationQuotas
from kvorum.groups.settings import GroupCoordinatorSettings
from kvorum.metadata.config_definitions import (
    TOPIC_CONFIGS,
    ConfigValue,
    ValueOf,
    default_value,
    keys_of,
    read_settings,
)
from kvorum.metadata.config_definitions.settings import keyed_fields
from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.node.config.known import SETTINGS
from kvorum.node.config.listeners import ListenerKeys
from kvorum.node.config.node_config import with_id_synonyms
from kvorum.node.config.values import NODE_CONFIGS, NodeValues
from kvorum.raft.config import RaftConfig
from kvorum.storage.cleaner.cleanup_config import CleanupConfig
from kvorum.storage.log.log_config import LogConfig
from kvorum.storage.topic_log.topic_log_config import TopicLogConfig, TopicSegmentConfig


def in_ms(seconds: int) -> int:
    return seconds * 1000


class Windows(NamedTuple):
    number: Annotated[int, "window.num"]
    ms: Annotated[int, "window.seconds", in_ms]


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
