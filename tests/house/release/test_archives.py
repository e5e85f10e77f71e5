"""The content of the two files of a release, and the section of the changelog that names it."""

import re
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from datetime import date

import pytest
from packaging.metadata import Metadata
from packaging.requirements import Requirement
from packaging.version import Version
from tests.house.release.building import Archives
from tests.support.source_tree import LEFT_BEHIND, ROOT, SOURCE_ROOTS
from tools.cut_release import (
    CHANGELOG,
    UNRELEASED,
    VERSION_FILE,
    ReleaseError,
    released_version,
    stated_version,
    with_release,
    with_version,
)
from trove_classifiers import classifiers

from kvorum.cli import main
from kvorum.node.version import VERSION

NEEDED_TO_BUILD_AND_TEST = (
    "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md",
    "constraints.txt", "pyproject.toml", ".ci/run", ".gitattributes",
    ".github/workflows/test.yml", ".pre-commit-config.yaml", "benchmarks/__main__.py",
    "docs/wire.md", "docs/releasing.md", "json-schemas/FetchRequest.json", "tests/conftest.py",
    "tests/golden/sets.tar.xz", "tests/support/java/ConfigDefinitions.java",
    "tests/house/release/building.py", "tools/cut_release.py", "tools/unused_code_allowed.txt",
)  # fmt: skip
DAY = date(2030, 5, 17)
LOG = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2030-01-01)\n\n- Old.\n"


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
    plain = {
        need.name
        for need in contents.metadata.requires_dist or []
        if need.marker is None or need.marker.evaluate({"extra": ""})
    }
    wanted = map(Requirement, project["dependencies"])
    assert plain == {one.name for one in wanted if one.marker is None or one.marker.evaluate()}


def test_the_licence_is_the_projects(archives: Archives) -> None:
    with zipfile.ZipFile(archives.wheel) as archive:
        text = archive.read(f"kvorum-{VERSION}.dist-info/licenses/LICENSE")
    assert text == (ROOT / "LICENSE").read_bytes()


def test_unreleased_gets_number_and_date_and_an_empty_one_stands_above_it() -> None:
    assert with_release(LOG, version=Version("0.2.0"), day=DAY) == (
        "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2030-05-17)\n\n- New.\n\n"
        "## 0.1.0 (2030-01-01)\n\n- Old.\n"
    )


def test_the_projects_own_changelog_can_be_cut_once() -> None:
    # Right after a release the section is empty.
    changelog = CHANGELOG.read_text("utf-8").replace(UNRELEASED, f"{UNRELEASED}\n- New.\n", 1)
    cut = with_release(changelog, version=Version("99.0"), day=DAY)
    assert "## Unreleased\n\n## 99.0 (2030-05-17)\n" in cut
    with pytest.raises(ReleaseError, match="is empty"):
        with_release(cut, version=Version("99.1"), day=DAY)
    with pytest.raises(ReleaseError, match="already"):
        with_release(cut, version=Version("99.0"), day=DAY)


@pytest.mark.parametrize(
    ("text", "why"),
    [("0.2.0.dev1", "no version to release"), ("0.0.9", "comes before"), ("x", "Invalid version")],
)
def test_a_version_that_cannot_be_released_is_refused(text: str, why: str) -> None:
    with pytest.raises(ReleaseError, match=why):
        released_version(text, stated=Version("0.1.0.dev0"))


def test_a_development_version_is_followed_by_its_release() -> None:
    assert released_version("0.1.0", stated=Version("0.1.0.dev0")) == Version("0.1.0")


def test_the_version_stands_in_one_place() -> None:
    source = VERSION_FILE.read_text("utf-8")
    assert str(stated_version(source)) == VERSION
    assert stated_version(with_version(source, Version("9.8.7"))) == Version("9.8.7")
    elsewhere = [
        path.relative_to(ROOT).as_posix()
        for folder in ("wire", "storage", "server", "spark", "codegen", "tools")
        for path in (ROOT / folder).rglob("*.py")
        if path != VERSION_FILE and f'"{VERSION}"' in path.read_text("utf-8")
    ]
    assert elsewhere == []
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r"^version = ", project, re.MULTILINE) is None


def test_the_command_tells_its_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"kvorum {VERSION}\n"
