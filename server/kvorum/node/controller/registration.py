"""A controller's own registration with the active one (KIP-919)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress

from kvorum.metadata.cluster_image import Endpoint
from kvorum.metadata.features import VersionRange
from kvorum.metadata.image import MetadataImage
from kvorum.node.events.event import Event
from kvorum.node.metadata_loader import MetadataLoader
from kvorum.node.outbound.client_connection import NoCommonVersionError
from kvorum.node.outbound.controller_channel import ControllerChannel, ControllerUnreachableError
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationRequestFeature,
    ControllerRegistrationRequestListener,
    ControllerRegistrationResponse,
)

FIRST_PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 120.0
_log = logging.getLogger(__name__)


class ControllerRegistrar:
    """Registers one incarnation of a controller, again if need be, until the log has it."""

    def __init__(
        self,
        *,
        node_id: int,
        incarnation_id: bytes,
        listeners: tuple[Endpoint, ...],
        supported_features: Mapping[str, VersionRange],
        channel: ControllerChannel,
        loader: MetadataLoader,
    ) -> None:
        self._node_id = node_id
        self._incarnation_id = incarnation_id
        self._listeners = listeners
        self._supported_features = supported_features
        self._channel = channel
        self._loader = loader
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin as soon as the metadata.version has room for registrations."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop trying."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        await self._channel.close()

    async def _run(self) -> None:
        while True:
            await self._loader.wait_for(self._is_wanted)
            pause = FIRST_PAUSE_SECONDS
            while not await self._try_once():
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
            await self._loader.wait_for(self._is_registered)

    async def _try_once(self) -> bool:
        try:
            response = await self._channel.request(self._request(), ControllerRegistrationResponse)
        except (ControllerUnreachableError, NoCommonVersionError) as error:
            _log.warning(
                Event("Registering a controller failed", controller=self._node_id, error=str(error))
            )
            return False
        if response.error_code != ErrorCode.NONE:
            _log.warning(
                Event(
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
            listeners=[
                ControllerRegistrationRequestListener(
                    name=endpoint.listener,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=endpoint.security_protocol,
                )
                for endpoint in self._listeners
            ],
            features=[
                ControllerRegistrationRequestFeature(
                    name=name, min_supported_version=range_.min, max_supported_version=range_.max
                )
                for name, range_ in self._supported_features.items()
            ],
        )
