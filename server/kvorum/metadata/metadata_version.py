"""Levels of metadata.version, and the capabilities that each level adds."""

from enum import IntEnum, unique
from types import MappingProxyType
from typing import Final

from kvorum.metadata.errors import UnknownFeatureError

METADATA_VERSION_FEATURE: Final = "metadata.version"


@unique
class MetadataVersion(IntEnum):
    """One level of metadata.version; levels compare as numbers."""

    V3_3_IV3 = 7
    V3_4_IV0 = 8
    V3_5_IV0 = 9
    V3_5_IV1 = 10
    V3_5_IV2 = 11
    V3_6_IV0 = 12
    V3_6_IV1 = 13
    V3_6_IV2 = 14
    V3_7_IV0 = 15
    V3_7_IV1 = 16
    V3_7_IV2 = 17
    V3_7_IV3 = 18
    V3_7_IV4 = 19
    V3_8_IV0 = 20
    V3_9_IV0 = 21
    V4_0_IV0 = 22
    V4_0_IV1 = 23
    V4_0_IV2 = 24
    V4_0_IV3 = 25
    V4_1_IV0 = 26
    V4_1_IV1 = 27
    V4_2_IV0 = 28
    V4_2_IV1 = 29
    V4_3_IV0 = 30
    V4_4_IV0 = 31
    V4_4_IV1 = 32
    V4_4_IV2 = 33
    V4_5_IV0 = 34

    @property
    def text(self) -> str:
        """The level as Kafka writes it: "4.3-IV0"."""
        major, minor, step = self.name[1:].split("_")
        return f"{major}.{minor}-{step}"

    @property
    def release(self) -> str:
        """The release the level belongs to: "4.3"."""
        return self.text.partition("-")[0]

    @property
    def is_production(self) -> bool:
        """Whether clusters outside of tests may use this level."""
        return self <= LATEST_PRODUCTION_METADATA_VERSION

    @property
    def supports_scram(self) -> bool:
        """SCRAM credentials are stored in the metadata log."""
        return self >= MetadataVersion.V3_5_IV2

    @property
    def bumps_leader_epoch_on_isr_shrink(self) -> bool:
        """A partition whose ISR shrinks gets a new leader epoch."""
        return self < MetadataVersion.V3_6_IV0

    @property
    def supports_metadata_transactions(self) -> bool:
        """Begin, End and AbortTransactionRecord may be written."""
        return self >= MetadataVersion.V3_6_IV1

    @property
    def supports_delegation_tokens(self) -> bool:
        """Delegation tokens are stored in the metadata log."""
        return self >= MetadataVersion.V3_6_IV2

    @property
    def supports_controller_registration(self) -> bool:
        """Controllers register themselves (KIP-919)."""
        return self >= MetadataVersion.V3_7_IV0

    @property
    def supports_directory_assignment(self) -> bool:
        """Replicas are assigned to log directories (KIP-858)."""
        return self >= MetadataVersion.V3_7_IV2

    @property
    def supports_elr(self) -> bool:
        """Records may contain eligible leader replicas (KIP-966)."""
        return self >= MetadataVersion.V4_0_IV1

    @property
    def supports_cordoned_log_dirs(self) -> bool:
        """Brokers report which of their log directories are cordoned (KIP-1066)."""
        return self >= MetadataVersion.V4_3_IV0

    @property
    def supports_cidr_acls(self) -> bool:
        """The host of an ACL may be a range of addresses (KIP-1276)."""
        return self >= MetadataVersion.V4_4_IV1

    @property
    def supports_controller_unregistration(self) -> bool:
        """The registration of a controller may be removed (KIP-1312)."""
        return self >= MetadataVersion.V4_4_IV2

    @property
    def register_broker_record_version(self) -> int:
        """Version in which RegisterBrokerRecord is written."""
        if self.supports_cordoned_log_dirs:
            return 4
        if self.supports_directory_assignment:
            return 3
        return 2 if self >= MetadataVersion.V3_4_IV0 else 1

    @property
    def partition_record_version(self) -> int:
        """Version in which PartitionRecord and PartitionChangeRecord are written."""
        if self.supports_elr:
            return 2
        return 1 if self.supports_directory_assignment else 0


LEVELS_THAT_CHANGED_METADATA: Final = frozenset(
    {
        MetadataVersion.V3_3_IV3,
        MetadataVersion.V3_4_IV0,
        MetadataVersion.V3_5_IV2,
        MetadataVersion.V3_6_IV1,
        MetadataVersion.V3_6_IV2,
        MetadataVersion.V3_7_IV0,
        MetadataVersion.V3_7_IV2,
        MetadataVersion.V4_0_IV1,
        MetadataVersion.V4_3_IV0,
        MetadataVersion.V4_4_IV1,
        MetadataVersion.V4_4_IV2,
    }
)
MINIMUM_METADATA_VERSION: Final = MetadataVersion.V3_3_IV3
LATEST_PRODUCTION_METADATA_VERSION: Final = MetadataVersion.V4_4_IV2
LATEST_TESTING_METADATA_VERSION: Final = MetadataVersion.V4_5_IV0

_BY_TEXT: Final = MappingProxyType(
    # Levels ascend, so a release ends up with the highest production level it has.
    {version.release: version for version in MetadataVersion if version.is_production}
    | {version.text: version for version in MetadataVersion}
)


def metadata_version_from_level(level: int) -> MetadataVersion:
    """Return the version with `level`; raise `UnknownFeatureError` without one."""
    try:
        return MetadataVersion(level)
    except ValueError:
        raise UnknownFeatureError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from "
            f"{int(MINIMUM_METADATA_VERSION)} to {int(LATEST_TESTING_METADATA_VERSION)}."
        ) from None


def metadata_version_from_text(text: str, *, allow_unstable: bool = False) -> MetadataVersion:
    """Return the version that "4.3-IV0", "4.3" or "4.3.1" names.

    Only the first two parts between dots count, as in Kafka; a release stands for its highest
    production level.
    """
    version = _BY_TEXT.get(".".join(text.split(".")[:2]))
    if version is None or not (allow_unstable or version.is_production):
        last = (
            LATEST_TESTING_METADATA_VERSION
            if allow_unstable
            else LATEST_PRODUCTION_METADATA_VERSION
        )
        known = ", ".join(known.text for known in MetadataVersion if known <= last)
        raise UnknownFeatureError(
            f"Unknown metadata.version '{text}'. Supported metadata.version are: {known}"
        )
    return version


def metadata_changed_between(source: MetadataVersion, target: MetadataVersion) -> bool:
    """Return whether any level above the lower one, up to the higher one, changed the metadata."""
    low, high = min(source, target), max(source, target)
    return any(low < version <= high for version in LEVELS_THAT_CHANGED_METADATA)
