"""Properties given in Python: their texts, and the keys that are refused."""

from typing import cast

import pytest

from kvorum.node.config import ConfigError
from kvorum.node.embedded.overrides import DECIDED_KEYS, OverrideValue, nearest_key, override_texts

NEAREST = {
    "num.partition": "num.partitions",
    "num_partitions": "num.partitions",
    "retention.ms": "log.retention.ms",
    "min.insync.replica": "min.insync.replicas",
    "auto.create.topic.enable": "auto.create.topics.enable",
    "broker.session.timeout": "broker.session.timeout.ms",
    "fetch.timeout": "controller.quorum.fetch.timeout.ms",
    "Log.Dirs": "log.dirs",
    "log.segment.byte": "log.segment.bytes",
}


@pytest.mark.parametrize(("written", "meant"), NEAREST.items())
def test_a_misspelled_key_is_refused_with_the_nearest_known_one(written: str, meant: str) -> None:
    with pytest.raises(ConfigError) as caught:
        override_texts({written: 1, "log.dirs": "here"})
    assert str(caught.value) == f"unknown configuration key '{written}', did you mean '{meant}'?"


def test_a_key_that_is_like_no_other_is_refused_alone() -> None:
    assert nearest_key("xyz") is None
    with pytest.raises(ConfigError, match=r"unknown configuration key 'xyz'; key 'zyx'$"):
        override_texts({"zyx": 1, "xyz": 2})


def test_values_are_written_as_in_a_properties_file() -> None:
    overrides: dict[str, OverrideValue] = {
        "num.partitions": 3,
        "log.cleaner.enable": True,
        "log.dirs": "a b",
        "log.cleaner.min.cleanable.ratio": 0.5,
    }
    assert override_texts(overrides) == {
        "num.partitions": "3",
        "log.cleaner.enable": "true",
        "log.dirs": "a b",
        "log.cleaner.min.cleanable.ratio": "0.5",
    }


@pytest.mark.parametrize("value", [None, ["a"], b"a"])
def test_a_value_of_another_kind_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"num\.partitions is .*: a string, a number or a boolean"):
        override_texts({"num.partitions": cast("OverrideValue", value)})


@pytest.mark.parametrize("key", sorted(DECIDED_KEYS))
def test_a_key_that_the_cluster_decides_is_refused(key: str) -> None:
    with pytest.raises(ConfigError, match=f"^{key} cannot be overridden: the cluster decides"):
        override_texts({key: "7", "num.partitions": 1})


@pytest.mark.parametrize(
    ("overrides", "text"),
    [([("a", "b")], r"\[\('a', 'b'\)\] is no mapping"), ({1: 2}, "the key 1 is no string")],
)
def test_overrides_without_keys_and_texts_are_refused(overrides: object, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        override_texts(cast("dict[str, OverrideValue]", overrides))


def test_a_policy_may_have_keys_of_its_own() -> None:
    overrides = {"create.topic.policy.class.name": "rules.Prefix", "house.prefix": "a"}
    assert override_texts(overrides) == overrides


def test_a_listener_may_have_keys_of_its_own() -> None:
    overrides = {"listener.name.plaintext.max.connections": "4"}
    assert override_texts(overrides) == overrides
