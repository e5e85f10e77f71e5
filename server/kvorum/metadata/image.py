"""Everything the metadata log says up to some offset, as one immutable value.

An image is made by folding records into an earlier one. Parts that a record does not touch are
shared, so keeping the committed image beside a pending one costs next to nothing, and dropping
changes that never committed means dropping a value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvorum.metadata.acls_image import AclsImage
from kvorum.metadata.client_quotas_image import ClientQuotasImage
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.configs_image import ConfigsImage
from kvorum.metadata.delegation_tokens_image import DelegationTokensImage
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features_image import FeaturesImage
from kvorum.metadata.metadata_version import MetadataVersion
from kvorum.metadata.replay import ImageEditor, OpenTransaction, fold_record
from kvorum.metadata.scram_image import ScramImage
from kvorum.metadata.topics_image import TopicsImage
from kvorum.wire.primitives import Message


@dataclass(frozen=True, slots=True)
class MetadataImage:
    """The state of the cluster after the record at `last_offset`.

    Inside a metadata transaction the parts hold its records too, as the controller needs to see
    them; whoever acts on an image outside the controller takes `published`.
    """

    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    next_producer_id: int = -1
    acls: AclsImage = field(default_factory=AclsImage)
    scram: ScramImage = field(default_factory=ScramImage)
    delegation_tokens: DelegationTokensImage = field(default_factory=DelegationTokensImage)
    transaction: OpenTransaction | None = None
    last_offset: int = -1

    @property
    def published(self) -> MetadataImage:
        """The image as it was before the open transaction; itself where none is open."""
        return self if self.transaction is None else self.transaction.before

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
        return editor.finish()
