"""The bootstrap records of a directory, as this release formats it and as older ones did."""

import shutil
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from kvorum.metadata.bootstrap import BootstrapMetadata
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MetadataVersion,
)
from kvorum.metadata.record_frame import encode_record
from kvorum.node.config import NodeConfig
from kvorum.node.directories import open_directories
from kvorum.storage.files import RealFileSystem
from kvorum.storage.metadata_log.bootstrap_checkpoint import write_bootstrap_snapshot
from kvorum.storage.names import METADATA_LOG_DIRECTORY
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord

FILES = RealFileSystem()


@pytest.fixture
def formatted_by_4_3(golden_sets: Path, tmp_path: Path) -> Path:
    """A directory that Kafka 4.3.1 formatted, with bootstrap.checkpoint and the voters in 0-0."""
    golden = golden_sets / "standalone-4.3.1" / "metadata" / "broker-12"
    made = tmp_path / "data"
    (made / METADATA_LOG_DIRECTORY).mkdir(parents=True)
    for name in ("meta.properties", "bootstrap.checkpoint"):
        shutil.copy(golden / name, made)
    for snapshot in golden.glob(f"{METADATA_LOG_DIRECTORY}/*.checkpoint"):
        shutil.copy(snapshot, made / METADATA_LOG_DIRECTORY)
    return made


def bootstrap_in(directory: Path) -> BootstrapMetadata:
    config = NodeConfig.from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "12",
            "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": "localhost:9093",
            "log.dirs": str(directory),
        }
    )
    with ExitStack() as locks:
        return open_directories(config, FILES, random=Random(1), locks=locks).bootstrap


def test_the_file_of_an_older_release_is_read(formatted_by_4_3: Path) -> None:
    found = bootstrap_in(formatted_by_4_3)
    assert found.metadata_version == MetadataVersion.V4_3_IV0
    assert found.source.endswith("bootstrap.checkpoint")
    assert len(found.records) > 1


def test_records_in_the_snapshot_at_offset_0_count_first(formatted_by_4_3: Path) -> None:
    level = FeatureLevelRecord(name=METADATA_VERSION_FEATURE, feature_level=25)
    shutil.rmtree(formatted_by_4_3 / METADATA_LOG_DIRECTORY)
    write_bootstrap_snapshot(
        formatted_by_4_3 / METADATA_LOG_DIRECTORY,
        FILES,
        values=[encode_record(level, 0)],
        kraft_version=0,
        voters=None,
        now_ms=1,
    )
    assert bootstrap_in(formatted_by_4_3).records == ((level, 0),)


def test_without_records_a_cluster_begins_at_the_latest_level(formatted_by_4_3: Path) -> None:
    (formatted_by_4_3 / "bootstrap.checkpoint").unlink()
    found = bootstrap_in(formatted_by_4_3)
    assert found.metadata_version == LATEST_PRODUCTION_METADATA_VERSION
    assert found.source == "the default bootstrap"
