"""The features of a cluster: their levels, defaults and dependencies (KIP-584, KIP-1022)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from immutables import Map

from kvorum.metadata.errors import ReplayError, UnknownFeatureError
from kvorum.metadata.metadata_version import (
    LATEST_PRODUCTION_METADATA_VERSION,
    LATEST_TESTING_METADATA_VERSION,
    METADATA_VERSION_FEATURE,
    MINIMUM_METADATA_VERSION,
    MetadataVersion,
)
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord

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
    """A feature other than metadata.version, with all its levels in ascending order.

    `levels` are those of the reference release. `served_max` is the highest one whose requests
    kvorum's brokers serve.
    """

    name: str
    levels: tuple[FeatureLevel, ...]
    served_max: int

    @property
    def supported(self) -> VersionRange:
        """The levels that a cluster may have in which this node takes part."""
        return VersionRange(self.levels[0].level, self.levels[-1].level)

    @property
    def served(self) -> VersionRange:
        """The levels that a broker of kvorum offers."""
        return VersionRange(self.levels[0].level, self.served_max)

    def level(self, number: int) -> FeatureLevel:
        """Return the level `number`; raise `UnknownFeatureError` without one."""
        for level in self.levels:
            if level.level == number:
                return level
        raise UnknownFeatureError(f"No feature:{self.name} with feature level {number}")

    def kafka_level(self, metadata_version: MetadataVersion) -> int:
        """Return the level that Kafka gives a cluster formatted at `metadata_version`."""
        return max(
            level.level
            for level in self.levels
            if level.bootstrap_metadata_version <= metadata_version
        )

    def default_level(self, metadata_version: MetadataVersion) -> int:
        """Return the level that kvorum gives a cluster formatted at `metadata_version`.

        A level that is not served would promise clients requests that are refused.
        """
        return min(self.kafka_level(metadata_version), self.served_max)


def _feature(name: str, *levels: FeatureLevel) -> Feature:
    last = levels[-1].level
    return Feature(name, _from_zero(levels), served_max=last)


def _feature_served_to(served_max: int, name: str, *levels: FeatureLevel) -> Feature:
    return Feature(name, _from_zero(levels), served_max=served_max)


def _from_zero(levels: tuple[FeatureLevel, ...]) -> tuple[FeatureLevel, ...]:
    return FeatureLevel(0, MINIMUM_METADATA_VERSION), *levels


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
    _feature_served_to(0, STREAMS_VERSION_FEATURE, FeatureLevel(1, MetadataVersion.V4_2_IV1)),
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
    """Return the levels that a controller of this release supports, metadata.version first.

    A controller only keeps the levels: real brokers beside it may serve those that kvorum's
    brokers do not.
    """
    last = (
        LATEST_TESTING_METADATA_VERSION if enable_unstable else LATEST_PRODUCTION_METADATA_VERSION
    )
    supported = {METADATA_VERSION_FEATURE: VersionRange(int(MINIMUM_METADATA_VERSION), int(last))}
    supported.update((feature.name, feature.supported) for feature in FEATURES)
    return supported


def offered_features(
    finalized: Mapping[str, int], *, enable_unstable: bool = False
) -> dict[str, VersionRange]:
    """Return the levels that a broker names to clients, and registers with.

    They are those that it serves, or that the cluster has: real brokers serve those, and this one
    leads and replicates partitions beside them. A feature without a level above 0 is left out, as
    by a Kafka that does not know it.
    """
    supported = supported_features(enable_unstable=enable_unstable)
    for feature in FEATURES:
        last = max(feature.served_max, finalized.get(feature.name, 0))
        if last == 0:
            del supported[feature.name]
        elif last < feature.supported.max:
            supported[feature.name] = VersionRange(feature.supported.min, last)
    return supported


def kafka_feature_levels(metadata_version: MetadataVersion) -> dict[str, int]:
    """Return the level of each feature in a cluster that Kafka formats at `metadata_version`.

    Levels of 0 are included, metadata.version itself is not.
    """
    return {feature.name: feature.kafka_level(metadata_version) for feature in FEATURES}


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
