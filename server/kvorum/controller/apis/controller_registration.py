"""ControllerRegistration (70): a controller registers its endpoints and features."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.apis.broker_registration import checked_listeners
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, refused_by_default_message
from kvorum.metadata.cluster_image import feature_ranges, write_endpoints, write_features
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord


def register_controller(
    image: MetadataImage, request: ControllerRegistrationRequest, context: ControllerRequestContext
) -> ControllerResult[ControllerRegistrationResponse]:
    """Record the registration; it replaces an earlier one of the same id."""
    del context
    if not image.metadata_version.supports_controller_registration:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller registrations.",
        )
    record = RegisterControllerRecord(
        controller_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        zk_migration_ready=False,
        end_points=write_endpoints(
            checked_listeners(request.listeners), RegisterControllerRecord.ControllerEndpoint
        ),
        features=write_features(
            feature_ranges(request.features), RegisterControllerRecord.ControllerFeature
        ),
    )
    return ControllerResult(ControllerRegistrationResponse(), ((record, 0),))


API: Final = ControllerApi(
    request=ControllerRegistrationRequest,
    permission=AclOperation.CLUSTER_ACTION,
    decide=register_controller,
    refuse=refused_by_default_message(ControllerRegistrationResponse),
)
