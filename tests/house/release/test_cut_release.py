"""The "Unreleased" section of the changelog becomes a version."""

import re
from datetime import date

import pytest
from packaging.version import Version
from tests.support.source_tree import ROOT
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

from kvorum.cli import main
from kvorum.node.version import VERSION

DAY = date(2030, 5, 17)
LOG = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2030-01-01)\n\n- Old.\n"


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
