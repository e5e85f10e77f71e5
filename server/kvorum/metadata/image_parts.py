"""The parts of a metadata image, and the transaction that may be open in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from kvorum.metadata.acls_image import AclsImage
from kvorum.metadata.client_quotas_image import ClientQuotasImage
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.configs_image import ConfigsImage
from kvorum.metadata.delegation_tokens_image import DelegationTokensImage
from kvorum.metadata.features_image import FeaturesImage
from kvorum.metadata.scram_image import ScramImage
from kvorum.metadata.topics_image import TopicsImage


@dataclass(frozen=True, slots=True)
class ImageParts:
    """The state of the cluster after the record at `last_offset`, part by part.

    Inside a metadata transaction the parts hold its records too.
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


class OpenTransaction(NamedTuple):
    """A run of records that counts as a whole or not at all (KIP-868).

    `before` is the image as it was before the record at `begin_offset`.
    """

    name: str | None
    begin_offset: int
    before: ImageParts
