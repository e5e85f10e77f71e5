"""Bootstrap records of a new cluster, which formatting writes into the snapshot at offset 0."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kvorum.metadata.errors import MetadataError
from kvorum.metadata.features import KRAFT_VERSION_FEATURE
from kvorum.metadata.metadata_version import (
    METADATA_VERSION_FEATURE,
    MetadataVersion,
    metadata_version_from_level,
)
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord


class BootstrapMetadata(NamedTuple):
    """The records that a cluster's first active controller writes, and where they were read."""

    records: tuple[RecordAndVersion, ...]
    metadata_version: MetadataVersion
    source: str

    def feature_level(self, name: str) -> int:
        """Return the level that the records set for the feature `name`, 0 where they set none."""
        level = 0
        for message, _ in self.records:
            if isinstance(message, FeatureLevelRecord) and message.name == name:
                level = message.feature_level
        return level


def bootstrap_from_features(
    metadata_version: MetadataVersion, levels: Mapping[str, int], *, source: str
) -> BootstrapMetadata:
    """Return the records for a cluster at `metadata_version` with features at `levels`.

    metadata.version comes first, then the features above level 0 by name; kraft.version is left
    out, because control records contain it.
    """
    names = sorted(levels.keys() - {METADATA_VERSION_FEATURE, KRAFT_VERSION_FEATURE})
    wanted = [(METADATA_VERSION_FEATURE, int(metadata_version))]
    wanted += [(name, levels[name]) for name in names if levels[name] > 0]
    records: list[RecordAndVersion] = [
        (FeatureLevelRecord(name=name, feature_level=level), 0) for name, level in wanted
    ]
    return BootstrapMetadata(tuple(records), metadata_version, source)


def bootstrap_from_records(
    records: Iterable[RecordAndVersion], *, source: str
) -> BootstrapMetadata:
    """Return the bootstrap metadata in `records`, which must set a metadata.version."""
    kept = tuple(records)
    level = BootstrapMetadata(kept, MetadataVersion.V3_3_IV3, source).feature_level(
        METADATA_VERSION_FEATURE
    )
    if not level:
        raise MetadataError(
            f"No FeatureLevelRecord for {METADATA_VERSION_FEATURE} was found in the bootstrap "
            f"metadata from {source}"
        )
    return BootstrapMetadata(kept, metadata_version_from_level(level), source)
