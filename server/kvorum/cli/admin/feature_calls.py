"""Calls that describe and change the levels of features."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

from kvorum.cli.admin.client import Call
from kvorum.cli.admin.errors import Failure, refusal
from kvorum.cli.admin.quorum_calls import final
from kvorum.controller.apis.update_features import UpgradeType
from kvorum.metadata.features import VersionRange
from kvorum.node.outbound.client_connection import CLIENT_SOFTWARE_NAME, CLIENT_SOFTWARE_VERSION
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kvorum.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

Answer = TypeVar("Answer")
_API_EXCEPTION = "org.apache.kafka.common.errors.ApiException"


@dataclass(frozen=True, slots=True)
class FeaturesInfo:
    """The levels that a node supports and those in force; `epoch` is None where it tells none."""

    supported: Mapping[str, VersionRange]
    finalized: Mapping[str, int]
    epoch: int | None


def describe_features_call(node_id: int | None) -> Call[ApiVersionsResponse, FeaturesInfo]:
    """Return the call that reads the features from a node, None for any."""
    return _api_versions_call(node_id, _features_info)


def describe_apis_call(node_id: int) -> Call[ApiVersionsResponse, Mapping[int, VersionRange]]:
    """Return the call that reads the versions of the APIs that a node serves, by their keys."""
    return _api_versions_call(node_id, _served)


def _api_versions_call(
    node_id: int | None, read: Callable[[ApiVersionsResponse], Answer]
) -> Call[ApiVersionsResponse, Answer]:
    return Call(
        name="describeFeatures",
        request=lambda _: ApiVersionsRequest(
            client_software_name=CLIENT_SOFTWARE_NAME,
            client_software_version=CLIENT_SOFTWARE_VERSION,
        ),
        response_class=ApiVersionsResponse,
        read=read,
        node_id=node_id,
    )


def _served(response: ApiVersionsResponse) -> Mapping[int, VersionRange]:
    if response.error_code != ErrorCode.NONE:
        raise final(refusal(response.error_code, None))
    return {
        one.api_key: VersionRange(one.min_version, one.max_version) for one in response.api_keys
    }


def update_features_call(
    levels: Mapping[str, int], upgrade_type: UpgradeType, *, is_dry_run: bool
) -> Call[UpdateFeaturesResponse, Mapping[str, Failure | None]]:
    """Return the call that changes features to `levels`; the order is that of the request.

    The result has the failure of each feature, None for success.
    """

    def request(timeout_ms: int) -> UpdateFeaturesRequest:
        updates = [
            UpdateFeaturesRequest.FeatureUpdateKey(
                feature=name, max_version_level=level, upgrade_type=upgrade_type
            )
            for name, level in levels.items()
        ]
        return UpdateFeaturesRequest(
            timeout_ms=timeout_ms, feature_updates=updates, validate_only=is_dry_run
        )

    def read(response: UpdateFeaturesResponse) -> Mapping[str, Failure | None]:
        if response.error_code != ErrorCode.NONE:
            raise final(refusal(response.error_code, response.error_message))
        if not response.results:
            return dict.fromkeys(levels)
        results = {result.feature: result for result in response.results}
        return {name: _failure(name, results.get(name)) for name in levels}

    return Call(
        name="updateFeatures",
        request=request,
        response_class=UpdateFeaturesResponse,
        read=read,
        controller_codes=lambda response: (response.error_code,),
    )


def _failure(
    name: str, result: UpdateFeaturesResponse.UpdatableFeatureResult | None
) -> Failure | None:
    if result is None:
        problem = f"The controller response did not contain a result for feature {name}"
        return Failure(class_name=_API_EXCEPTION, text=problem)
    if result.error_code == ErrorCode.NONE:
        return None
    return refusal(result.error_code, result.error_message).failure


def _features_info(response: ApiVersionsResponse) -> FeaturesInfo:
    if response.error_code != ErrorCode.NONE:
        raise final(refusal(response.error_code, None))
    epoch = response.finalized_features_epoch
    return FeaturesInfo(
        supported=MappingProxyType(
            {
                one.name: VersionRange(one.min_version, one.max_version)
                for one in response.supported_features
            }
        ),
        finalized=MappingProxyType(
            {one.name: one.max_version_level for one in response.finalized_features}
        ),
        epoch=epoch if epoch >= 0 else None,
    )
