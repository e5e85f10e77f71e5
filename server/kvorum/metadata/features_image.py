"""Finalized feature levels, folded from FeatureLevelRecords."""

from dataclasses import dataclass, field

from immutables import Map

from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import (
    DISABLED,
    ELR_VERSION_FEATURE,
    KRAFT_VERSION_FEATURE,
    supported_features,
)
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE, MetadataVersion
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord


@dataclass(frozen=True, slots=True)
class FeaturesImage:
    """The finalized features of the cluster.

    `metadata_version` is None until its first record; `levels` contains the other features that are
    above level 0. kraft.version is not among them: control records of the log contain it.
    """

    metadata_version: MetadataVersion | None = None
    levels: Map[str, int] = field(default_factory=Map[str, int])

    def level(self, name: str) -> int:
        """Return the finalized level of the feature `name`, 0 where it is off or unknown."""
        if name == METADATA_VERSION_FEATURE:
            return int(self.metadata_version or 0)
        return self.levels.get(name, 0)

    @property
    def is_elr_enabled(self) -> bool:
        """Whether eligible leader replicas are maintained (KIP-966)."""
        return self.level(ELR_VERSION_FEATURE) >= 1

    def all_levels(self) -> dict[str, int]:
        """Return every finalized level by name, metadata.version first, the others by name."""
        first = (
            {METADATA_VERSION_FEATURE: int(self.metadata_version)} if self.metadata_version else {}
        )
        return first | {name: self.levels[name] for name in sorted(self.levels)}


def replay_feature_level(image: FeaturesImage, record: FeatureLevelRecord) -> FeaturesImage:
    """Return `image` with one feature's level changed.

    Raises `ReplayError` for a level that this release does not support: it could not read the
    records that the cluster writes from then on.
    """
    name, level = record.name, record.feature_level
    if name == KRAFT_VERSION_FEATURE:
        return image
    supported = supported_features(enable_unstable=True).get(name, DISABLED)
    if level not in supported:
        raise ReplayError(
            f"the log sets feature {name} to level {level}, but this release supports {supported}"
        )
    if name == METADATA_VERSION_FEATURE:
        return FeaturesImage(MetadataVersion(level), image.levels)
    if level:
        return FeaturesImage(image.metadata_version, image.levels.set(name, level))
    if name not in image.levels:
        return image
    return FeaturesImage(image.metadata_version, image.levels.delete(name))
