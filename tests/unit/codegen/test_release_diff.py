"""Two made-up releases are compared, and each difference has one line."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.unit.codegen.made_up_jars import ERRORS, enum_class, errors_class, make_jar

from kvorum.codegen.errors import CodegenError
from kvorum.codegen.release_diff import definition_differences, release_diff
from kvorum.codegen.release_facts import definitions_in

COMMON = "org/apache/kafka/server/common"
WIDGETS: Mapping[str, Any] = {
    "apiKey": 99, "type": "request", "name": "AlterWidgetsRequest", "listeners": ["broker"],
    "validVersions": "0", "flexibleVersions": "0+",
    "fields": [
        {"name": "Color", "type": "string", "versions": "0+", "about": "Prose."},
        {"name": "Widgets", "type": "[]Widget", "versions": "0+", "fields": [
            {"name": "Id", "type": "int32", "versions": "0+"},
            {"name": "Size", "type": "int32", "versions": "0+"}]}]}  # fmt: skip


def write_release(
    folder: Path, *schemas: Mapping[str, Any], metadata_versions: int = 2, **errors: tuple[int, str]
) -> Path:
    """Write jars with these messages of kafka-clients and these errors; the newest level is not
    for production."""
    versions = {
        f"IBP_9_{number}_IV0": (number, f"9.{number}", "IV0", number % 2)
        for number in range(1, metadata_versions + 1)
    }
    latest = f"IBP_9_{metadata_versions - 1}_IV0"
    owner = f"{COMMON}/MetadataVersion"
    metadata = enum_class(owner, versions, MINIMUM_VERSION="IBP_9_1_IV0", LATEST_PRODUCTION=latest)
    levels = {"WV_0": (0, (owner, "MINIMUM_VERSION")), "WV_1": (1, (owner, latest))}
    widgets = enum_class(f"{COMMON}/WidgetVersion", levels, LATEST_PRODUCTION="WV_1")
    named = {
        "WIDGETS": ("widget.version", (f"{COMMON}/WidgetVersion", "LATEST_PRODUCTION")),
        "TEST": ("test.feature.version", (f"{COMMON}/Unread", "LATEST_PRODUCTION")),
    }
    folder.mkdir()
    make_jar(
        folder / f"kafka-clients-{folder.name}.jar",
        **{ERRORS: errors_class(**errors)},
        **{f"common/message/{one['name']}.json": json.dumps(one) for one in schemas},
    )
    make_jar(
        folder / f"kafka-server-common-{folder.name}.jar",
        **{f"{owner}.class": metadata, f"{COMMON}/WidgetVersion.class": widgets},
        **{f"{COMMON}/Feature.class": enum_class(f"{COMMON}/Feature", named)},
    )
    return folder


@pytest.fixture(autouse=True)
def _no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


def test_one_release_beside_itself_differs_in_nothing(tmp_path: Path) -> None:
    same = write_release(tmp_path / "9.1", WIDGETS)
    text = release_diff(same, same)
    assert text.count("Nothing differs.") == text.count("\n## ") - 1
    assert text.endswith(
        "Not compared: they need a JDK on the path, and "
        "tests/support/java/ConfigDefinitions.java in this folder.\n"
    )


def test_a_message_that_changes_has_a_line_for_each_fact(tmp_path: Path) -> None:
    color, widgets = WIDGETS["fields"]
    identity, _ = widgets["fields"]
    weight = {"name": "Weight", "type": "int32", "versions": "1+", "default": "7"}
    other = {**widgets, "versions": "1+", "fields": [weight, identity]}
    changed = {**WIDGETS, "validVersions": "0-1", "latestVersionUnstable": True,
               "listeners": ["broker", "controller"], "fields": [other, color]}  # fmt: skip
    old, new = (
        write_release(tmp_path / name, one) for name, one in (("9.1", WIDGETS), ("9.2", changed))
    )
    subject = "| AlterWidgetsRequest (99) |"
    assert [line for line in release_diff(old, new).splitlines() if line.startswith(subject)] == [
        f"{subject} validVersions | 0 | 0-1 |",
        f"{subject} latestVersionUnstable | - | true |",
        f"{subject} listeners | broker | broker, controller |",
        f"{subject} field Widgets | []Widget, versions 0+ | []Widget, versions 1+ |",
        f"{subject} field Widgets.Weight | - | int32, versions 1+, default 7 |",
        f"{subject} field Widgets.Size | int32, versions 0+ | - |",
        f"{subject} order of fields | Color, Widgets, Widgets.Id | Widgets, Widgets.Id, Color |",
    ]


def test_what_is_new_and_gone_stands_in_the_table_of_its_kind(tmp_path: Path) -> None:
    record: Mapping[str, Any] = {
        "type": "data", "name": "Cog", "validVersions": "0", "flexibleVersions": "0+", "fields": [],
    }  # fmt: skip
    old = write_release(tmp_path / "9.1", WIDGETS, LOST=(7, "Lost | found."))
    new = write_release(tmp_path / "9.2", record, metadata_versions=3, FOUND=(8, "Found."))
    _, apis, records, errors, features, _ = release_diff(old, new).split("\n## ")
    assert apis.splitlines()[-1] == (
        "| AlterWidgetsRequest (99) | gone | validVersions 0, flexibleVersions 0+, "
        "listeners broker, fields 4 | - |"
    )
    assert records.splitlines()[-1] == (
        "| Cog | new | - | validVersions 0, flexibleVersions 0+, fields 0 |"
    )
    assert errors.splitlines()[-2:] == [
        "| 7 | gone | LOST: Lost \\| found. | - |",
        "| 8 | new | - | FOUND: Found. |",
    ]
    assert features.splitlines()[4:] == [
        "| metadata.version | production level | 1 | 2 |",
        "| metadata.version | level 2 | 9.2-IV0, unstable | 9.2-IV0, production |",
        "| metadata.version | level 3 | - | 9.3-IV0, new records, unstable |",
        "| widget.version | level 1 | 9.1-IV0, production | 9.2-IV0, production |",
    ]


def test_configuration_keys_differ_fact_by_fact() -> None:
    def printed(*rows: Mapping[str, Any]) -> str:
        return json.dumps({"topic": rows, "topic_synonyms": {"b": [["log.b", 1]]}})

    same = {"name": "a", "type": "INT", "default": "1", "required": False}
    old = definitions_in(printed(same, {**same, "name": "b"}, {**same, "name": "gone"}))
    changed = {**same, "name": "b", "default": "2", "validator": ["Range", 0, None]}
    new = definitions_in(printed(same, changed, {**same, "name": "c", "required": True}))
    assert definition_differences(old, new) == {
        "Configuration keys: topic": [
            ("b", "default", "1", "2"),
            ("b", "validator", "-", '["Range", 0, null]'),
            ("c", "new", "-", "INT, default 1, required"),
            ("gone", "gone", "INT, default 1", "-"),
        ]
    }


def test_a_release_without_the_enum_of_features_is_refused(tmp_path: Path) -> None:
    whole = write_release(tmp_path / "9.1", WIDGETS)
    (whole / "kafka-server-common-9.1.jar").unlink()
    with pytest.raises(CodegenError, match="no org/apache/kafka/server/common/Feature"):
        release_diff(whole, whole)
