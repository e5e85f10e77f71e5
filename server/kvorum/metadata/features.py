"""The features of a cluster: their levels, defaults and dependencies (KIP-584, KIP-1022)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from kvorum.metadata.errors import UnknownFeatureError
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    LATEST_TESTING_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MINIMUM_METADATA_VERSION,
    MetadataVersion,
)

KRAFT_VERSION_FEATURE: Final = "kraft.version"
TRANSACTION_VERSION_FEATURE: Final = "transaction.version"
GROUP_VERSION_FEATURE: Final = "group.version"
ELR_VERSION_FEATURE: Final = "eligible.leader.replicas.version"
SHARE_VERSION_FEATURE: Final = "share.version"
STREAMS_VERSION_FEATURE: Final = "streams.version"


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A range of feature levels, both ends included."""

    min: int
    max: int

    def __contains__(self, level: int) -> bool:
        return self.min <= level <= self.max

    def __str__(self) -> str:
        return str(self.min) if self.min == self.max else f"{self.min}-{self.max}"


DISABLED: Final = VersionRange(0, 0)


@dataclass(frozen=True, slots=True)
class FeatureLevel:
    """One level of a feature.

    `bootstrap_metadata_version` is the first metadata.version at which a new cluster gets this
    level by default; `dependencies` are the levels that other features must have first.
    """

    level: int
    bootstrap_metadata_version: MetadataVersion
    dependencies: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature other than metadata.version, with all its levels in ascending order."""

    name: str
    levels: tuple[FeatureLevel, ...]

    @property
    def supported(self) -> VersionRange:
        """The levels that this release supports in production."""
        return VersionRange(self.levels[0].level, self.levels[-1].level)

    def level(self, number: int) -> FeatureLevel:
        """Return the level `number`; raise `UnknownFeatureError` without one."""
        for level in self.levels:
            if level.level == number:
                return level
        raise UnknownFeatureError(f"No feature:{self.name} with feature level {number}")

    def default_level(self, metadata_version: MetadataVersion) -> int:
        """Return the level that a cluster formatted at `metadata_version` gets."""
        return max(
            level.level
            for level in self.levels
            if level.bootstrap_metadata_version <= metadata_version
        )


def _feature(name: str, *levels: FeatureLevel) -> Feature:
    return Feature(name, (FeatureLevel(0, MINIMUM_METADATA_VERSION), *levels))


FEATURES: Final[tuple[Feature, ...]] = (
    _feature(KRAFT_VERSION_FEATURE, FeatureLevel(1, MetadataVersion.V3_9_IV0)),
    _feature(
        TRANSACTION_VERSION_FEATURE,
        FeatureLevel(1, MetadataVersion.V4_0_IV2),
        FeatureLevel(2, MetadataVersion.V4_0_IV2),
    ),
    _feature(GROUP_VERSION_FEATURE, FeatureLevel(1, MetadataVersion.V4_0_IV0)),
    _feature(
        ELR_VERSION_FEATURE,
        FeatureLevel(
            1,
            MetadataVersion.V4_1_IV0,
            MappingProxyType({METADATA_VERSION_FEATURE: int(MetadataVersion.V4_0_IV1)}),
        ),
    ),
    _feature(
        SHARE_VERSION_FEATURE,
        FeatureLevel(1, MetadataVersion.V4_2_IV0),
        FeatureLevel(2, MetadataVersion.V4_4_IV0),
    ),
    _feature(STREAMS_VERSION_FEATURE, FeatureLevel(1, MetadataVersion.V4_2_IV1)),
)
"""Every feature but metadata.version, in the order Kafka lists them."""

_FEATURES_BY_NAME: Final = MappingProxyType({feature.name: feature for feature in FEATURES})


def feature_from_name(name: str) -> Feature:
    """Return the feature called `name`; raise `UnknownFeatureError` without one."""
    try:
        return _FEATURES_BY_NAME[name]
    except KeyError:
        raise UnknownFeatureError(f"Feature {name} not found.") from None


def supported_features(*, enable_unstable: bool = False) -> dict[str, VersionRange]:
    """Return the levels that a node of this release supports, metadata.version first."""
    last = (
        LATEST_TESTING_METADATA_VERSION if enable_unstable else LATEST_PRODUCTION_METADATA_VERSION
    )
    supported = {METADATA_VERSION_FEATURE: VersionRange(int(MINIMUM_METADATA_VERSION), int(last))}
    supported.update((feature.name, feature.supported) for feature in FEATURES)
    return supported


def default_feature_levels(metadata_version: MetadataVersion) -> dict[str, int]:
    """Return the level of each feature in a cluster formatted at `metadata_version`.

    Levels of 0 are included, metadata.version itself is not.
    """
    return {feature.name: feature.default_level(metadata_version) for feature in FEATURES}


def check_dependencies(name: str, level: int, levels: Mapping[str, int]) -> None:
    """Raise `UnknownFeatureError` unless `levels` meet all dependencies of `name` at `level`.

    `levels` is the complete present or planned set, metadata.version included.
    """
    metadata_version = levels.get(METADATA_VERSION_FEATURE, 0)
    if level >= 1 and metadata_version < MINIMUM_METADATA_VERSION:
        raise UnknownFeatureError(
            f"{name} could not be set to {level} because it depends on "
            f"{METADATA_VERSION_FEATURE}={int(MINIMUM_METADATA_VERSION)} "
            f"({MINIMUM_METADATA_VERSION.text})"
        )
    for needed, needed_level in feature_from_name(name).level(level).dependencies.items():
        if levels.get(needed, 0) < needed_level:
            raise UnknownFeatureError(
                f"{name} could not be set to {level} because it depends on "
                f"{needed} level {needed_level}"
            )
