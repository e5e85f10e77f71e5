"""Levels of metadata.version and of the other features: names, order, defaults, dependencies."""

import pytest

from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.features import (
    FEATURES,
    VersionRange,
    check_dependencies,
    feature_from_name,
    kafka_feature_levels,
    offered_features,
    supported_features,
)
from kvorum.metadata.java_hash import hash_table_order
from kvorum.metadata.metadata_version import (
    MetadataVersion,
    metadata_changed_between,
    metadata_version_from_level,
    metadata_version_from_text,
)

NAMES = (
    "eligible.leader.replicas.version",
    "group.version",
    "kraft.version",
    "metadata.version",
    "share.version",
    "streams.version",
    "transaction.version",
)
OF_THIRTY = "18 17 19 14 13 16 15 1 10 0 12 11 5 4 3 2 9 8 7 6 29 28 25 24 27 26 21 20 23 22"


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("3.3-IV3", 7),
        ("3.3", 7),
        ("3.5", 11),
        ("3.6-IV0", 12),
        ("3.7", 19),
        ("3.9", 21),
        ("3.9.1", 21),
        ("4.0", 25),
        ("4.0-IV1", 23),
        ("4.1", 27),
        ("4.2", 29),
        ("4.3", 30),
        ("4.3.1", 30),
        ("4.4-IV0", 31),
        ("4.4", 33),
        ("4.4.0", 33),
    ],
)
def test_texts_name_levels(text: str, level: int) -> None:
    assert metadata_version_from_text(text) == level


@pytest.mark.parametrize("text", ["", "3", "3.2", "4.5", "4.5-IV0", "5.0", "x"])
def test_texts_that_name_nothing(text: str) -> None:
    with pytest.raises(UnknownFeatureError) as caught:
        metadata_version_from_text(text)
    assert str(caught.value).startswith(
        f"Unknown metadata.version '{text}'. Supported metadata.version are: 3.3-IV3, 3.4-IV0, "
    )
    assert str(caught.value).endswith(", 4.4-IV1, 4.4-IV2")


def test_unstable_levels_must_be_allowed() -> None:
    assert metadata_version_from_text("4.5-IV0", allow_unstable=True) == 34


def test_every_level_is_named_by_its_own_text() -> None:
    for version in MetadataVersion:
        assert metadata_version_from_text(version.text, allow_unstable=True) is version
        assert metadata_version_from_level(int(version)) is version
        assert version.text.startswith(version.release)


@pytest.mark.parametrize("level", [-1, 0, 6, 35])
def test_levels_that_do_not_exist(level: int) -> None:
    message = (
        f"No MetadataVersion with feature level {level}. Valid feature levels are from 7 to 34."
    )
    with pytest.raises(UnknownFeatureError, match=message):
        metadata_version_from_level(level)


@pytest.mark.parametrize(
    ("source", "target", "is_changed"),
    [
        (34, 33, False),
        (33, 32, True),
        (32, 31, True),
        (31, 30, False),
        (30, 29, True),
        (29, 23, False),
        (23, 22, True),
        (22, 17, False),
        (10, 8, False),
        (8, 7, True),
    ],
)
def test_where_metadata_changed(source: int, target: int, *, is_changed: bool) -> None:
    first, second = MetadataVersion(source), MetadataVersion(target)
    assert metadata_changed_between(first, second) is is_changed
    assert metadata_changed_between(second, first) is is_changed


@pytest.mark.parametrize(
    ("level", "broker", "partition"),
    [(7, 1, 0), (8, 2, 0), (16, 2, 0), (17, 3, 1), (23, 3, 2), (30, 4, 2)],
)
def test_versions_of_records(level: int, broker: int, partition: int) -> None:
    version = MetadataVersion(level)
    assert version.register_broker_record_version == broker
    assert version.partition_record_version == partition


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (7, [0, 0, 0, 0, 0, 0]),
        (21, [1, 0, 0, 0, 0, 0]),
        (22, [1, 0, 1, 0, 0, 0]),
        (24, [1, 2, 1, 0, 0, 0]),
        (26, [1, 2, 1, 1, 0, 0]),
        (28, [1, 2, 1, 1, 1, 0]),
        (30, [1, 2, 1, 1, 1, 1]),
        (31, [1, 2, 1, 1, 2, 1]),
    ],
)
def test_defaults_follow_the_level(level: int, expected: list[int]) -> None:
    assert list(kafka_feature_levels(MetadataVersion(level)).values()) == expected


def test_what_this_release_supports() -> None:
    assert {name: str(range_) for name, range_ in supported_features().items()} == {
        "metadata.version": "7-33",
        "kraft.version": "0-1",
        "transaction.version": "0-2",
        "group.version": "0-1",
        "eligible.leader.replicas.version": "0-1",
        "share.version": "0-2",
        "streams.version": "0-1",
    }
    assert supported_features(enable_unstable=True)["metadata.version"] == VersionRange(7, 34)


def test_what_is_not_served_is_neither_a_default_nor_offered() -> None:
    not_served = ["streams.version"]
    latest = MetadataVersion.V4_4_IV2
    defaults = {feature.name: feature.default_level(latest) for feature in FEATURES}
    assert [name for name, level in defaults.items() if level == 0] == not_served
    offered = offered_features(defaults)
    assert {name: str(range_) for name, range_ in offered.items()} == {
        "metadata.version": "7-33",
        "kraft.version": "0-1",
        "transaction.version": "0-2",
        "group.version": "0-1",
        "eligible.leader.replicas.version": "0-1",
        "share.version": "0-2",
    }


def test_a_broker_may_be_in_a_cluster_that_has_a_level_already() -> None:
    features = offered_features({"streams.version": 1})
    assert features["streams.version"] == VersionRange(0, 1)


def test_defaults_never_break_their_own_dependencies() -> None:
    for version in MetadataVersion:
        levels = kafka_feature_levels(version) | {"metadata.version": int(version)}
        for feature in FEATURES:
            check_dependencies(feature.name, levels[feature.name], levels)


@pytest.mark.parametrize(
    ("name", "level", "levels", "message"),
    [
        (
            "eligible.leader.replicas.version",
            1,
            {"metadata.version": 22},
            (
                "eligible.leader.replicas.version could not be set to 1 because it depends on "
                "metadata.version level 23"
            ),
        ),
        (
            "group.version",
            1,
            {},
            (
                "group.version could not be set to 1 because it depends on metadata.version=7 "
                "(3.3-IV3)"
            ),
        ),
        (
            "group.version",
            2,
            {"metadata.version": 30},
            "No feature:group.version with feature level 2",
        ),
        ("no.version", 1, {"metadata.version": 30}, "Feature no.version not found."),
    ],
)
def test_dependencies_that_are_missing(
    name: str, level: int, levels: dict[str, int], message: str
) -> None:
    with pytest.raises(UnknownFeatureError) as caught:
        check_dependencies(name, level, levels)
    assert str(caught.value) == message


def test_ranges() -> None:
    assert 3 in VersionRange(1, 3)
    assert 4 not in VersionRange(1, 3)
    assert str(VersionRange(2, 2)) == "2"
    assert feature_from_name("share.version").supported == VersionRange(0, 2)


def test_the_features_come_in_the_order_of_java() -> None:
    assert hash_table_order(NAMES) == [*NAMES[1:], NAMES[0]]


def test_a_table_grows_with_what_is_in_it() -> None:
    names = hash_table_order(f"key-{number}" for number in range(30))
    assert [name.removeprefix("key-") for name in names] == OF_THIRTY.split()


def test_any_text_has_a_place_and_comes_once() -> None:
    texts = ["\u00e4", "\U0001f600", "", "zz", "Aa", "BB", "zz"]
    assert hash_table_order(texts) == ["", "zz", "Aa", "BB", "\u00e4", "\U0001f600"]
