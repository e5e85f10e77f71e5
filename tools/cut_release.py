"""`python -m tools.cut_release VERSION`: what CHANGELOG.md calls "Unreleased" becomes a version.

The version is written to its one place, and the changelog's section gets its number and date; a new
and empty "Unreleased" stands above it. Nothing is committed, tagged or uploaded: docs/releasing.md
lists those steps.
"""

import argparse
import re
import sys
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from packaging.version import InvalidVersion, Version

ROOT: Final = Path(__file__).resolve().parents[1]
CHANGELOG: Final = ROOT / "CHANGELOG.md"
VERSION_FILE: Final = ROOT / "server" / "kvorum" / "node" / "version.py"
UNRELEASED: Final = "## Unreleased\n"
HEADING: Final = re.compile(r"^## (\S+)", re.MULTILINE)
VERSION_LINE: Final = re.compile(r'^VERSION: Final = "(?P<version>[^"]+)"$', re.MULTILINE)


class ReleaseError(Exception):
    """A version cannot be cut; the text says why."""


def stated_version(source: str) -> Version:
    """Return the version that version.py states."""
    found = VERSION_LINE.search(source)
    if found is None:
        raise ReleaseError(f"{VERSION_FILE.name} has no line VERSION: Final = ...")
    return Version(found["version"])


def with_version(source: str, version: Version) -> str:
    """Return version.py with another version."""
    stated_version(source)
    return VERSION_LINE.sub(f'VERSION: Final = "{version}"', source)


def with_release(changelog: str, *, version: Version, day: date) -> str:
    """Return the changelog with its "Unreleased" section as `version`, under an empty new one.

    Raises `ReleaseError` when that section is missing or empty, or when the version is there.
    """
    if str(version) in HEADING.findall(changelog):
        raise ReleaseError(f"CHANGELOG.md has a section {version} already")
    before, heading, after = changelog.partition(UNRELEASED)
    if not heading:
        raise ReleaseError('CHANGELOG.md has no section "Unreleased"')
    following = HEADING.search(after)
    if not after[: following.start() if following else len(after)].strip():
        raise ReleaseError('the section "Unreleased" of CHANGELOG.md is empty')
    return f"{before}{heading}\n## {version} ({day.isoformat()})\n{after}"


def released_version(text: str, *, stated: Version) -> Version:
    """Return the version to release; it may not be a development version, nor go backwards."""
    try:
        version = Version(text)
    except InvalidVersion as error:
        raise ReleaseError(str(error)) from error
    if version.is_devrelease or version.local is not None:
        raise ReleaseError(f"{version} is no version to release")
    if version < stated:
        raise ReleaseError(f"{version} comes before {stated}, which version.py states")
    return version


def main() -> int:
    """Cut the version that the command line names."""
    parser = argparse.ArgumentParser(prog="cut_release", description=__doc__)
    parser.add_argument("version")
    parser.add_argument("--date", type=date.fromisoformat, default=datetime.now(UTC).date())
    arguments = parser.parse_args()
    source = VERSION_FILE.read_text(encoding="utf-8")
    changelog = CHANGELOG.read_text(encoding="utf-8")
    try:
        version = released_version(arguments.version, stated=stated_version(source))
        changed = with_release(changelog, version=version, day=arguments.date)
    except ReleaseError as error:
        print(f"cut_release: {error}", file=sys.stderr)
        return 1
    CHANGELOG.write_text(changed, encoding="utf-8")
    VERSION_FILE.write_text(with_version(source, version), encoding="utf-8")
    print(f"kvorum {version}: look at the changes with git diff, then go on in docs/releasing.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
