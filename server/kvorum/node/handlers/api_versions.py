"""ApiVersions (18): the APIs and versions served here, and the cluster's features."""

import re
from collections.abc import Mapping
from typing import Final

from kvorum.metadata.api import NONE, refused_by_code
from kvorum.metadata.features import (
    KRAFT_VERSION_FEATURE,
    VersionRange,
    offered_features,
    supported_features,
)
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.metadata_version import METADATA_VERSION_FEATURE, MINIMUM_METADATA_VERSION
from kvorum.node.services import (
    BrokerApi,
    BrokerServices,
    ControllerListenerApi,
    ControllerServices,
    VersionRanges,
)
from kvorum.node.serving.repeated_answers import Basis
from kvorum.node.serving.request import IncomingRequest
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.primitives import Message

FIRST_VERSION_WITH_SOFTWARE = 3
FIRST_VERSION_WITH_LEVEL_ZERO = 4
NO_NODE: Final = -1
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


async def answer_on_broker(
    request: IncomingRequest[ApiVersionsRequest], broker: BrokerServices
) -> Message:
    """Return the broker's APIs; forwarded ones in the versions that the controller serves too.

    A client that means another node, or one of another cluster, is to begin again with its
    bootstrap servers (KIP-1242). As in Kafka, controllers do not look at that, nor is it looked at
    before SASL has authenticated the client.
    """
    if not _is_valid(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    wanted = (request.body.cluster_id, request.body.node_id)
    is_for_a_node = request.body.cluster_id is not None and request.session.is_authenticated
    if is_for_a_node and wanted != (broker.cluster_id, broker.config.node_id):
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    finalized = _finalized(broker.loader.published, broker.raft.kraft_version)
    is_unstable = broker.config.enable_unstable_feature_versions
    return _response(
        request,
        broker.served(),
        supported=offered_features(finalized, enable_unstable=is_unstable),
        finalized=finalized,
        epoch=broker.loader.published_offset,
    )


async def answer_on_controller(
    request: IncomingRequest[ApiVersionsRequest], controller: ControllerServices
) -> Message:
    """Return the controller's APIs."""
    if not _is_valid(request):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = controller.loader.published
    finalized = _finalized(image, controller.raft.kraft_version)
    if image.features.metadata_version is None:
        finalized[METADATA_VERSION_FEATURE] = int(MINIMUM_METADATA_VERSION)
    # Kafka's controllers use the configuration key for APIs here, its brokers that for features.
    is_unstable = controller.config.enable_unstable_api_versions
    return _response(
        request,
        controller.served,
        supported=supported_features(enable_unstable=is_unstable),
        finalized=finalized,
        epoch=controller.loader.features_offset,
    )


def _basis_on_broker(broker: BrokerServices) -> Basis:
    loader = broker.loader
    versions = broker.forwarder.channel.controller_versions
    return loader.published, loader.published_offset, broker.raft.kraft_version, versions


def _basis_on_controller(controller: ControllerServices) -> Basis:
    loader = controller.loader
    return loader.published, loader.features_offset, controller.raft.kraft_version


def _is_valid(request: IncomingRequest[ApiVersionsRequest]) -> bool:
    body = request.body
    if request.version < FIRST_VERSION_WITH_SOFTWARE:
        return True
    if (body.cluster_id is None) is not (body.node_id == NO_NODE):
        # A client names the node that it means as a whole, or not at all (KIP-1242).
        return False
    return all(
        _SOFTWARE.fullmatch(text)
        for text in (body.client_software_name, body.client_software_version)
    )


def _finalized(image: MetadataImage, kraft_version: int) -> dict[str, int]:
    levels = image.features.all_levels()
    if kraft_version > 0:
        levels[KRAFT_VERSION_FEATURE] = kraft_version
    return levels


def _response(
    request: IncomingRequest[ApiVersionsRequest],
    served: VersionRanges,
    *,
    supported: Mapping[str, VersionRange],
    finalized: Mapping[str, int],
    epoch: int,
) -> ApiVersionsResponse:
    lists_level_zero = request.version >= FIRST_VERSION_WITH_LEVEL_ZERO
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(key, first, last)
            for key, (first, last) in sorted(served.items())
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name, levels.min, levels.max)
            for name, levels in supported.items()
            if levels.min > 0 or lists_level_zero
        ],
        finalized_features_epoch=epoch,
        finalized_features=[
            ApiVersionsResponse.FinalizedFeatureKey(name, level, level)
            for name, level in finalized.items()
            if level > 0
        ],
    )


ON_BROKER: Final = BrokerApi(
    request=ApiVersionsRequest,
    permission=NONE,
    answer=answer_on_broker,
    refuse=refused_by_code(ApiVersionsResponse),
    basis=_basis_on_broker,
)
ON_CONTROLLER: Final = ControllerListenerApi(
    request=ApiVersionsRequest,
    permission=NONE,
    answer=answer_on_controller,
    refuse=refused_by_code(ApiVersionsResponse),
    basis=_basis_on_controller,
)
