"""The log directories that get no new replicas: by the properties, or by a dynamic value."""

import pytest
from tests.unit.node.properties import BOTH

from kvorum.metadata.configs_image import ResourceType
from kvorum.metadata.image import MetadataImage
from kvorum.node.broker.cordoned_log_dirs import cordoned_log_dirs
from kvorum.node.config import NodeConfig
from kvorum.wire.messages.config_record import ConfigRecord

CONFIG = NodeConfig.from_properties(
    {**BOTH, "log.dirs": "/a,/b", "metadata.log.dir": "/m", "cordoned.log.dirs": "/a"}
)
OTHER_ID = CONFIG.node_id + 1


def cordoned(value: str, *, broker_id: int = CONFIG.node_id) -> set[str]:
    record = ConfigRecord(ResourceType.BROKER, str(broker_id), "cordoned.log.dirs", value)
    return set(cordoned_log_dirs(CONFIG, MetadataImage().apply(record, 0, 0)))


def test_the_properties_count_without_a_dynamic_value() -> None:
    assert cordoned_log_dirs(CONFIG, MetadataImage()) == {"/a"}
    assert cordoned("/b", broker_id=OTHER_ID) == {"/a"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [("/b", {"/b"}), ("*", {"/a", "/b"}), ("", set[str]()), ("/c", set[str]())],
)
def test_a_dynamic_value_of_the_broker_counts_before_its_properties(
    value: str, expected: set[str]
) -> None:
    assert cordoned(value) == expected


def test_an_invalid_dynamic_value_does_not_count() -> None:
    assert cordoned("/b,,/b") == {"/a"}
