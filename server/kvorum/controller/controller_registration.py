"""ControllerRegistration (70): a controller tells where it is reached and what it supports."""

from __future__ import annotations

from kvorum.controller.broker_registration import checked_listeners
from kvorum.controller.result import ControllerResult
from kvorum.controller.settings import ControllerContext
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kvorum.wire.messages.register_controller_record import (
    RegisterControllerRecord,
    RegisterControllerRecordControllerEndpoint,
    RegisterControllerRecordControllerFeature,
)


def register_controller(
    image: MetadataImage, request: ControllerRegistrationRequest, context: ControllerContext
) -> ControllerResult[ControllerRegistrationResponse]:
    """Write the registration down; it replaces an earlier one of the same id."""
    del context
    if not image.metadata_version.supports_controller_registration:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    listeners = checked_listeners(request.listeners)
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=[
            RegisterControllerRecordControllerEndpoint(
                name=listener.name,
                host=listener.host,
                port=listener.port,
                security_protocol=listener.security_protocol,
            )
            for listener in listeners
        ],
        features=[
            RegisterControllerRecordControllerFeature(
                name=feature.name,
                min_supported_version=feature.min_supported_version,
                max_supported_version=feature.max_supported_version,
            )
            for feature in request.features
        ],
    )
    return ControllerResult(ControllerRegistrationResponse(), ((record, 0),))
