"""The content of the two files of a release."""

import tarfile
import tomllib
import zipfile
from dataclasses import dataclass

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from tests.house.release.building import Archives
from tests.support.source_tree import LEFT_BEHIND, ROOT, SOURCE_ROOTS
from trove_classifiers import classifiers

from kvorum.node.version import VERSION

NEEDED_TO_BUILD_AND_TEST = (
    "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "constraints.txt", "pyproject.toml", ".ci/run", ".gitattributes",
    ".github/workflows/test.yml", ".pre-commit-config.yaml", "benchmarks/__main__.py",
    "docs/wire.md", "docs/releasing.md", "json-schemas/FetchRequest.json", "tests/conftest.py",
    "tests/golden/sets.tar.xz", "tests/support/java/ConfigDefinitions.java",
    "tests/house/release/building.py", "tools/cut_release.py", "tools/unused_code_allowed.txt",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Contents:
    """The names in both archives, from the project's root on, and the wheel's metadata."""

    sdist: frozenset[str]
    wheel: frozenset[str]
    metadata: Metadata


@pytest.fixture(scope="session")
def contents(archives: Archives) -> Contents:
    with tarfile.open(archives.sdist) as archive:
        top = archives.sdist.name.removesuffix(".tar.gz") + "/"
        assert all(member.name.startswith(top) for member in archive)
        sdist = frozenset(member.name.removeprefix(top) for member in archive if member.isfile())
    with zipfile.ZipFile(archives.wheel) as archive:
        wheel = frozenset(archive.namelist())
        text = archive.read(f"kvorum-{VERSION}.dist-info/METADATA")
    return Contents(sdist, wheel, Metadata.from_email(text, validate=True))


@pytest.mark.process
def test_the_wheel_holds_every_source_file_and_nothing_else(contents: Contents) -> None:
    sources = {
        path.relative_to(ROOT / root).as_posix()
        for root in SOURCE_ROOTS
        for path in (ROOT / root / "kvorum").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    facts = {name for name in contents.wheel if name.startswith(f"kvorum-{VERSION}.dist-info/")}
    assert contents.wheel - facts == sources
    assert {name.rpartition("/")[2] for name in facts} == {
        "METADATA", "RECORD", "WHEEL", "entry_points.txt", "LICENSE",
    }  # fmt: skip


def test_every_room_of_the_wheel_is_typed_and_the_namespace_stays_open(contents: Contents) -> None:
    rooms = {name.split("/")[1] for name in contents.wheel if name.startswith("kvorum/")}
    assert {"wire", "storage", "node", "spark", "testing"} <= rooms
    assert [room for room in sorted(rooms) if f"kvorum/{room}/py.typed" not in contents.wheel] == []
    assert "kvorum/__init__.py" not in contents.wheel


@pytest.mark.parametrize("name", NEEDED_TO_BUILD_AND_TEST)
def test_the_source_archive_has_what_building_and_testing_take(
    contents: Contents, name: str
) -> None:
    assert name in contents.sdist


def test_the_source_archive_has_every_test_schema_and_document(contents: Contents) -> None:
    kept = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "json-schemas", "docs", "benchmarks", "tools")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and LEFT_BEHIND.isdisjoint(path.parts) and path.suffix != ".pyc"
    }
    assert kept - contents.sdist == set()


def test_neither_holds_what_work_leaves_behind(contents: Contents) -> None:
    found = [
        name
        for name in contents.sdist | contents.wheel
        if name.endswith((".pyc", ".pyo")) or not LEFT_BEHIND.isdisjoint(name.split("/"))
    ]
    assert found == []


def test_the_metadata_says_what_the_project_says(contents: Contents) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    metadata = contents.metadata
    assert metadata.name == "kvorum"
    assert str(metadata.version) == VERSION
    assert metadata.summary == project["description"]
    assert metadata.license_expression == "Apache-2.0"
    assert metadata.license_files == ["LICENSE"]
    assert metadata.description == (ROOT / "README.md").read_text("utf-8")
    assert metadata.description_content_type == "text/markdown"
    assert set(metadata.provides_extra or []) == set(project["optional-dependencies"])
    assert set(metadata.classifiers or []) <= classifiers


def test_without_an_extra_only_the_projects_own_dependencies_are_asked_for(
    contents: Contents,
) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    plain = {need.name for need in contents.metadata.requires_dist or [] if is_always_asked(need)}
    assert plain == {Requirement(text).name for text in project["dependencies"]}


def is_always_asked(need: Requirement) -> bool:
    return need.marker is None or need.marker.evaluate({"extra": ""})


def test_the_licence_is_the_projects(archives: Archives) -> None:
    with zipfile.ZipFile(archives.wheel) as archive:
        text = archive.read(f"kvorum-{VERSION}.dist-info/licenses/LICENSE")
    assert text == (ROOT / "LICENSE").read_bytes()
