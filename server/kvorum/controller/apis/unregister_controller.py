"""UnregisterController (94): removes a controller that will not return (KIP-1312)."""

from typing import Final

from kvorum.controller.api import ControllerApi, ControllerResult
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request, refused_by_message_or_default
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.unregister_controller import (
    UnregisterControllerRequest,
    UnregisterControllerResponse,
)
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord


def unregister_controller(
    image: MetadataImage, request: UnregisterControllerRequest, context: ControllerRequestContext
) -> ControllerResult[UnregisterControllerResponse]:
    """Remove a controller that is not a voter: its features then hold up no upgrade."""
    controller_id = request.controller_id
    if controller_id == context.leader_id:
        raise invalid_request("Controller cannot unregister itself while it is active.")
    if not image.metadata_version.supports_controller_unregistration:
        raise RequestError(
            ErrorCode.UNSUPPORTED_VERSION,
            "The current MetadataVersion is too old to support controller unregistration.",
        )
    if controller_id not in image.cluster.controllers:
        raise RequestError(
            ErrorCode.CONTROLLER_ID_NOT_REGISTERED,
            f"Controller ID {controller_id} is not currently registered.",
        )
    # Kafka 4.4.0 does not look at that yet (KAFKA-20865). The latest voters count: a set that is
    # not committed is before the record of the removal in the log.
    if any(voter.key.id == controller_id for voter in context.describe_quorum().voters):
        raise invalid_request(
            f"Controller {controller_id} is a voter; it has to be removed from the voters first."
        )
    record = UnregisterControllerRecord(controller_id=controller_id)
    return ControllerResult(UnregisterControllerResponse(), ((record, 0),))


API: Final = ControllerApi(
    request=UnregisterControllerRequest,
    permission=AclOperation.ALTER,
    decide=unregister_controller,
    refuse=refused_by_message_or_default(UnregisterControllerResponse),
)
