"""The metadata image: the state of the cluster up to some offset, as one immutable value.

An image is made by folding records into an earlier one. Parts that a record does not touch are
shared, so keeping the committed image beside a pending one costs next to nothing, and dropping
changes that never committed means dropping a value.

Parts that both images share are recognized by identity, so the cost of comparing an image with its
predecessor depends on the changes, not on the size of the image. Topics are compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.cluster_image import BrokerRegistration, ControllerRegistration
from kvorum.metadata.configs_image import ConfigResource, QuotaEntity
from kvorum.metadata.credentials_image import DelegationToken, ScramCredential
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.partition import PartitionRegistration
from kvorum.metadata.replay import ImageEditor, ImageParts, fold_record
from kvorum.metadata.topics_image import TopicImage
from kvorum.wire.primitives import Message

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class MetadataImage(ImageParts):
    """The state of the cluster after the record at `last_offset`.

    Inside a metadata transaction the parts contain its records too, as the controller needs them.
    Code outside the controller uses `published`.
    """

    @property
    def published(self) -> MetadataImage:
        """The image as it was before the open transaction; itself where none is open."""
        if self.transaction is None:
            return self
        before = self.transaction.before
        assert isinstance(before, MetadataImage)
        return before

    @property
    def metadata_version(self) -> MetadataVersion:
        """The finalized metadata.version; `ReplayError` before the log names one."""
        version = self.features.metadata_version
        if version is None:
            raise ReplayError("the metadata log has no metadata.version record")
        return version

    def apply(self, message: Message, version: int, offset: int) -> MetadataImage:
        """Return the image after one more record, which is at `offset`."""
        return self.apply_all([(message, version, offset)])

    def apply_all(self, records: Iterable[tuple[Message, int, int]]) -> MetadataImage:
        """Return the image after `records` (message, version, offset), in their order.

        Raises `ReplayError` for a record that contradicts the state; the image itself is never
        half changed.
        """
        editor = ImageEditor(self)
        for message, _, offset in records:
            fold_record(editor, message, offset)
        image = editor.finish()
        assert isinstance(image, MetadataImage)
        return image


@dataclass(frozen=True, slots=True)
class MapDelta(Generic[Key, Value]):
    """The differences between two mappings; `changed` has the values before and after."""

    added: Mapping[Key, Value]
    changed: Mapping[Key, tuple[Value, Value]]
    removed: Mapping[Key, Value]

    @property
    def is_empty(self) -> bool:
        """Whether the mappings are equal."""
        return not (self.added or self.changed or self.removed)


def map_delta(before: Mapping[Key, Value], after: Mapping[Key, Value]) -> MapDelta[Key, Value]:
    """Return the differences from `before` to `after`; the same object counts as equal."""
    if before is after:
        return MapDelta({}, {}, {})
    added: dict[Key, Value] = {}
    changed: dict[Key, tuple[Value, Value]] = {}
    for key, value in after.items():
        if key not in before:
            added[key] = value
        elif (old := before[key]) is not value and old != value:
            changed[key] = old, value
    kept = len(after) - len(added)
    removed = (
        {key: value for key, value in before.items() if key not in after}
        if kept < len(before)
        else {}
    )
    return MapDelta(added, changed, removed)


class ImageDelta(NamedTuple):
    """The differences between two images; each part is compared on access."""

    before: MetadataImage
    after: MetadataImage

    @property
    def features(self) -> MapDelta[str, int]:
        """Finalized levels by feature, metadata.version among them."""
        if self.before.features is self.after.features:
            return MapDelta({}, {}, {})
        return map_delta(self.before.features.all_levels(), self.after.features.all_levels())

    @property
    def brokers(self) -> MapDelta[int, BrokerRegistration]:
        """Registered brokers by id."""
        return map_delta(self.before.cluster.brokers, self.after.cluster.brokers)

    @property
    def controllers(self) -> MapDelta[int, ControllerRegistration]:
        """Registered controllers by id."""
        return map_delta(self.before.cluster.controllers, self.after.cluster.controllers)

    @property
    def topics(self) -> MapDelta[bytes, TopicImage]:
        """Topics by id; a topic that was deleted and created again has a new id."""
        return map_delta(self.before.topics.by_id, self.after.topics.by_id)

    def partitions(self, topic_id: bytes) -> MapDelta[int, PartitionRegistration]:
        """Return the partitions of one topic by index."""
        before = self.before.topics.by_id.get(topic_id)
        after = self.after.topics.by_id.get(topic_id)
        none: Mapping[int, PartitionRegistration] = {}
        return map_delta(
            none if before is None else before.partitions,
            none if after is None else after.partitions,
        )

    @property
    def configs(self) -> MapDelta[ConfigResource, Mapping[str, str]]:
        """Dynamic values by resource."""
        before: Mapping[ConfigResource, Mapping[str, str]] = self.before.configs.resources
        return map_delta(before, self.after.configs.resources)

    @property
    def client_quotas(self) -> MapDelta[QuotaEntity, Mapping[str, float]]:
        """Quota values by entity."""
        before: Mapping[QuotaEntity, Mapping[str, float]] = self.before.client_quotas.entities
        return map_delta(before, self.after.client_quotas.entities)

    @property
    def acls(self) -> MapDelta[bytes, AccessControlEntry]:
        """Access control entries by id."""
        return map_delta(self.before.acls.entries, self.after.acls.entries)

    @property
    def scram(self) -> MapDelta[tuple[int, str], ScramCredential]:
        """SCRAM credentials by mechanism and user."""
        return map_delta(self.before.scram.credentials, self.after.scram.credentials)

    @property
    def delegation_tokens(self) -> MapDelta[str, DelegationToken]:
        """Delegation tokens by id."""
        return map_delta(self.before.delegation_tokens.tokens, self.after.delegation_tokens.tokens)
