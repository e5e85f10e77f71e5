"""The work of Spark's Python processes around each task stays cheap, and finds the same modules."""

import gc
import importlib
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql.types import LongType, StructField, StructType
from tests.support.node_process import run_python

from kvorum.spark.log_source.source import KvorumLogReader, KvorumLogSource
from kvorum.spark.log_source.source import parse_options as log_options
from kvorum.spark.metadata_source.columns import columns_named
from kvorum.spark.metadata_source.source import KvorumMetadataReader, KvorumMetadataSource
from kvorum.spark.metadata_source.source import parse_options as metadata_options
from kvorum.spark.worker_process import (
    IS_REUSED,
    YOUNG_OBJECTS_MAX,
    forget_packages_in_archives,
    rare_collections,
)

PLANNING = "import sys, kvorum.spark.metadata_source.source; print(*sorted(sys.modules))"


class Archive:
    """A zip archive of a package on Python's path, as pyspark and kvorum itself may be."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.package = "package_of_an_archive"
        self.write("first")

    def write(self, *modules: str) -> None:
        with zipfile.ZipFile(self.file, "w") as archive:
            for name in ("__init__", *modules):
                archive.writestr(f"{self.package}/{name}.py", "")

    def module(self, name: str) -> ModuleType:
        return importlib.import_module(f"{self.package}.{name}")

    @property
    def finders(self) -> set[str]:
        """Which parts of the archive Python has a finder for."""
        return {
            path.removeprefix(str(self.file))
            for path in sys.path_importer_cache
            if path.startswith(str(self.file))
        }


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Archive]:
    made = Archive(tmp_path / "code.zip")
    monkeypatch.syspath_prepend(str(made.file))  # pyright: ignore[reportUnknownMemberType] - pytest's
    made.module("first")
    yield made
    for name in [name for name in sys.modules if name.startswith(made.package)]:
        del sys.modules[name]


@pytest.fixture
def reused_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(IS_REUSED, "1")
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_an_archive_is_read_once_and_not_for_each_package(archive: Archive) -> None:
    assert archive.finders == {"", f"/{archive.package}"}
    forget_packages_in_archives()
    assert archive.finders == {""}


def test_modules_of_an_archive_are_still_found(archive: Archive) -> None:
    forget_packages_in_archives()
    importlib.reload(archive.module("first"))
    archive.write("first", "second")
    importlib.invalidate_caches()
    assert archive.module("second").__name__ == f"{archive.package}.second"


OFFSETS = StructType([StructField("offset", LongType())])


def metadata_schema(options: dict[str, str]) -> None:
    assert KvorumMetadataSource(options).schema()


def log_schema(options: dict[str, str]) -> None:
    assert KvorumLogSource(options).schema()


def metadata_reader(options: dict[str, str]) -> None:
    assert KvorumMetadataSource(options).reader(OFFSETS)


def log_reader(options: dict[str, str]) -> None:
    assert KvorumLogSource(options).reader(OFFSETS)


def metadata_rows(options: dict[str, str]) -> None:
    made = KvorumMetadataReader(metadata_options(options), columns_named(["offset"]))
    assert not list(made.read(None))


def log_rows(options: dict[str, str]) -> None:
    assert not list(KvorumLogReader(log_options(options), ("offset",)).read(None))


STEPS = [metadata_schema, log_schema, metadata_reader, log_reader, metadata_rows, log_rows]


@pytest.mark.slow
@pytest.mark.usefixtures("reused_process")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: str(step.__name__))
def test_each_step_prepares_its_process(
    archive: Archive, step: Callable[[dict[str, str]], None]
) -> None:
    step({"path": "logs"})
    assert archive.finders == {""}
    assert gc.get_freeze_count() > 0


def test_a_process_that_is_not_sparks_is_left_as_it_is(archive: Archive) -> None:
    gc.unfreeze()
    metadata_rows({"path": "logs"})
    assert archive.finders == {"", f"/{archive.package}"}
    assert gc.get_freeze_count() == 0


def test_planning_imports_nothing_that_only_tasks_and_streams_need() -> None:
    modules = run_python("-c", PLANNING).stdout.split()
    assert "kvorum.log_files.find" in modules
    assert not {"pandas", "kvorum.quorum_client.client"}.intersection(modules)


def fail() -> None:
    raise ValueError(gc.get_threshold()[0])


def test_garbage_is_collected_as_before_once_a_task_has_failed() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match=f"^{YOUNG_OBJECTS_MAX}$"), rare_collections():
        fail()
    assert gc.get_threshold() == before
