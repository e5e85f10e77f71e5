"""ApiVersions (18), which a leader sends to learn the kraft.versions that a node supports."""

from __future__ import annotations

from kvorum.node.outbound.client_connection import CLIENT_SOFTWARE_NAME, CLIENT_SOFTWARE_VERSION
from kvorum.raft import messages as core
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

_KRAFT_VERSION_FEATURE = "kraft.version"


def write_request() -> ApiVersionsRequest:
    """Return the request to send."""
    return ApiVersionsRequest(
        client_software_name=CLIENT_SOFTWARE_NAME,
        client_software_version=CLIENT_SOFTWARE_VERSION,
    )


def read_response(response: ApiVersionsResponse) -> core.ApiVersionsResponse:
    """Return the core's form of a response."""
    code = response.error_code
    if code != ErrorCode.NONE:
        is_known = code in ErrorCode.__members__.values()
        name = ErrorCode(code).name if is_known else ErrorCode.UNKNOWN_SERVER_ERROR.name
        return core.ApiVersionsResponse(error_name=name)
    for feature in response.supported_features:
        if feature.name == _KRAFT_VERSION_FEATURE:
            return core.ApiVersionsResponse((feature.min_version, feature.max_version))
    return core.ApiVersionsResponse()
