"""Kafka's ControllerRegistrationManager: a controller's registration (KIP-919)."""

import logging
from collections.abc import Mapping

from kvorum.metadata.cluster_image import Endpoint, write_endpoints, write_features
from kvorum.metadata.features import VersionRange
from kvorum.metadata.image import MetadataImage
from kvorum.node.coroutines import ClosableTasks, sleep
from kvorum.node.events.log_event import LogEvent
from kvorum.node.metadata_loader import PublishedImages
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.node_to_controller_channel_manager import (
    ControllerUnreachableError,
    NodeToControllerChannelManager,
)
from kvorum.node.runtime import Runtime
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)

FIRST_PAUSE_MS = 100
PAUSE_MS_MAX = 120_000
_log = logging.getLogger(__name__)


class ControllerRegistrationManager:
    """Registers one incarnation of a controller; tries again until the log has it."""

    def __init__(
        self,
        *,
        node_id: int,
        incarnation_id: bytes,
        listeners: tuple[Endpoint, ...],
        supported_features: Mapping[str, VersionRange],
        channel: NodeToControllerChannelManager,
        images: PublishedImages,
        runtime: Runtime,
    ) -> None:
        self._node_id = node_id
        self._incarnation_id = incarnation_id
        self._listeners = listeners
        self._supported_features = supported_features
        self._channel = channel
        self._images = images
        self._runtime = runtime
        self._tasks = ClosableTasks()

    def start(self) -> None:
        """Register as soon as the metadata.version supports registrations of controllers."""
        self._tasks.start(self._run())

    def close(self) -> None:
        """Stop the attempts to register."""
        self._tasks.close()
        self._channel.close()

    async def _run(self) -> None:
        while True:
            await self._images.wait_for(self._is_wanted)
            pause_ms = FIRST_PAUSE_MS
            while not await self._try_once():
                await sleep(self._runtime, pause_ms)
                pause_ms = min(2 * pause_ms, PAUSE_MS_MAX)
            await self._images.wait_for(self._is_registered)

    async def _try_once(self) -> bool:
        try:
            response = await self._channel.send(self._request(), ControllerRegistrationResponse)
        except (ControllerUnreachableError, NoCommonVersionError) as error:
            _log.warning(
                LogEvent(
                    "Registering a controller failed", controller=self._node_id, error=str(error)
                )
            )
            return False
        if response.error_code != ErrorCode.NONE:
            _log.warning(
                LogEvent(
                    "The registration of a controller was refused",
                    controller=self._node_id,
                    error_code=response.error_code,
                    error=response.error_message,
                )
            )
        return response.error_code == ErrorCode.NONE

    def _is_wanted(self, image: MetadataImage) -> bool:
        version = image.features.metadata_version
        has_place = version is not None and version.supports_controller_registration
        return has_place and not self._is_registered(image)

    def _is_registered(self, image: MetadataImage) -> bool:
        registered = image.cluster.controllers.get(self._node_id)
        return registered is not None and registered.incarnation_id == self._incarnation_id

    def _request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=self._node_id,
            incarnation_id=self._incarnation_id,
            zk_migration_ready=False,
            listeners=write_endpoints(self._listeners, ControllerRegistrationRequest.Listener),
            features=write_features(
                self._supported_features.items(), ControllerRegistrationRequest.Feature
            ),
        )
