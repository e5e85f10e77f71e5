"""What DescribeConfigs tells, against answers that real Kafka gave."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.golden_data import GOLDEN, read_json_lines

from kvorum.metadata.config_definitions import (
    BrokerLayers,
    ConfigSource,
    DescribedConfig,
    describe_broker,
    describe_client_metrics,
    describe_cluster_default,
    describe_group,
    describe_topic,
)

TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
OWN_SOURCES = {ConfigSource.TOPIC_CONFIG, ConfigSource.GROUP_CONFIG, 7}


def golden_results(*, with_synonyms: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    for file in ("dynamic-4.3.1", "ladder-4.3.1"):
        path: Path = GOLDEN / "frames" / f"{file}.jsonl.gz"
        for frame in read_json_lines(path):
            if frame["api_key"] == 32 and frame["direction"] == "response":
                for result in frame["json"]["results"]:
                    found = any(entry["synonyms"] for entry in result["configs"])
                    if result["configs"] and found == with_synonyms:
                        yield frame["api_version"], result


def layer(result: dict[str, Any], source: int) -> dict[str, str]:
    return {
        synonym["name"]: synonym["value"]
        for entry in result["configs"]
        for synonym in entry["synonyms"]
        if synonym["source"] == source and synonym["value"] is not None
    }


def described(result: dict[str, Any]) -> list[DescribedConfig]:
    layers = BrokerLayers(
        static=layer(result, ConfigSource.STATIC_BROKER_CONFIG),
        dynamic_default=layer(result, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        dynamic=layer(result, ConfigSource.DYNAMIC_BROKER_CONFIG),
    )
    own = {name: text for source in OWN_SOURCES for name, text in layer(result, source).items()}
    match result["resourceType"], result["resourceName"]:
        case 2, _:
            return list(describe_topic(own, layers))
        case 4, "":
            return list(describe_cluster_default(layers))
        case 32, _:
            return list(describe_group(own, layers))
        case 16, _:
            return list(describe_client_metrics(own))
        case other:
            raise AssertionError(other)


def as_json(entry: DescribedConfig, version: int) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "name": entry.name,
        "value": entry.value,
        "readOnly": entry.is_read_only,
        "configSource": int(entry.source),
        "isSensitive": entry.is_sensitive,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": int(each.source)}
            for each in entry.synonyms
        ],
    }
    if version >= 3:
        shown["configType"] = entry.type
    return shown


def without_documentation(entry: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != "documentation"}


def by_name(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: entry["name"])


def test_answers_with_synonyms_are_kafkas() -> None:
    kinds: set[int] = set()
    for version, result in golden_results(with_synonyms=True):
        kinds.add(result["resourceType"])
        ours = [as_json(entry, version) for entry in described(result)]
        names = {entry["name"] for entry in result["configs"]}
        ours = [entry for entry in ours if entry["name"] in names]
        theirs = [without_documentation(entry) for entry in result["configs"]]
        assert by_name(ours) == by_name(theirs), result["resourceName"]
    assert kinds >= {TOPIC, BROKER, GROUP}


def test_a_whole_topic_has_the_keys_kafka_shows() -> None:
    whole = [
        {entry["name"] for entry in result["configs"]}
        for _, result in golden_results(with_synonyms=True)
        if result["resourceType"] == TOPIC and len(result["configs"]) > 30
    ]
    assert whole
    ours = {entry.name for entry in describe_topic({}, BrokerLayers())}
    assert all(names == ours for names in whole)


def test_every_topic_key_has_a_line_of_our_own() -> None:
    for entry in describe_topic({"internal.segment.bytes": "14"}, BrokerLayers()):
        assert entry.documentation
        assert "\n" not in entry.documentation


def entry_of(name: str, layers: BrokerLayers) -> DescribedConfig:
    return next(entry for entry in describe_broker(layers) if entry.name == name)


def test_a_secret_is_never_shown_not_even_as_a_synonym() -> None:
    layers = BrokerLayers(
        static={"ssl.key.password": "s3cret", "listener.name.x.ssl.key.password": "s3cret"},
        dynamic={"my.own.key": "s3cret"},
    )
    for entry in describe_broker(layers):
        assert entry.value != "s3cret"
        assert all(each.value != "s3cret" for each in entry.synonyms)
    assert entry_of("ssl.key.password", layers).is_sensitive
    assert entry_of("listener.name.x.ssl.key.password", layers).is_sensitive
    assert entry_of("my.own.key", layers).is_sensitive


@pytest.mark.parametrize(
    ("name", "is_read_only"),
    [("log.retention.ms", False), ("node.id", True), ("log.retention.hours", True)],
)
def test_what_can_change_while_the_broker_runs_is_not_read_only(
    name: str, is_read_only: bool
) -> None:
    assert entry_of(name, BrokerLayers(static={"node.id": "1"})).is_read_only is is_read_only


def test_the_strongest_layer_wins() -> None:
    layers = BrokerLayers(
        static={"log.retention.hours": "1", "log.retention.ms": "3"},
        dynamic_default={"log.retention.ms": "2"},
        dynamic={"log.retention.ms": "1"},
    )
    entry = entry_of("log.retention.ms", layers)
    assert (entry.value, entry.source) == ("1", ConfigSource.DYNAMIC_BROKER_CONFIG)
    assert [(each.name, each.value) for each in entry.synonyms] == [
        ("log.retention.ms", "1"),
        ("log.retention.ms", "2"),
        ("log.retention.ms", "3"),
        ("log.retention.hours", "1"),
        ("log.retention.hours", "168"),
    ]
