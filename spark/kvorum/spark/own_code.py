"""kvorum's own code as an archive for the executors of a Spark cluster.

    python -m kvorum.spark.own_code kvorum.zip

Python imports from such a file what Spark hands to executors (``spark-submit --py-files``), so that
no other machine needs kvorum installed; the packages that kvorum depends on are not in it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import kvorum

NAMESPACE: Final = "kvorum"
COMPILED: Final = "__pycache__"


def source_folders() -> list[Path]:
    """Return the directories that hold the packages of kvorum; none where it runs from an archive.

    An installed kvorum has one, a checkout one for each of its source roots.
    """
    found = [Path(each) for each in kvorum.__path__]
    return found if all(path.is_dir() for path in found) else []


def write_archive(archive: Path, folders: list[Path]) -> None:
    """Write the files in `folders` as one namespace package; raises OSError."""
    with ZipFile(archive, "w", ZIP_DEFLATED) as target:
        for folder in sorted({NAMESPACE, *(name for each in folders for name in _folders(each))}):
            # Python finds a namespace package in an archive by the entry of its directory.
            target.writestr(ZipInfo(f"{folder}/"), b"")
        for each in folders:
            for path in _files(each):
                target.write(path, f"{NAMESPACE}/{path.relative_to(each).as_posix()}")


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and COMPILED not in path.parts:
            yield path


def _folders(folder: Path) -> set[str]:
    found = {path.relative_to(folder).parent for path in _files(folder)}
    above = {parent for path in found for parent in (path, *path.parents)}
    return {f"{NAMESPACE}/{path.as_posix()}" for path in above if path != Path()}


def main() -> None:
    """Write the archive that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m kvorum.spark.own_code ARCHIVE.zip")
    write_archive(Path(sys.argv[1]), source_folders())


if __name__ == "__main__":
    main()
