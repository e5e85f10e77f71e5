"""The configuration of a group, set at a broker of any kind."""

from collections.abc import Mapping
from typing import Final

from tests.support.raw_client import RawClient

from kvorum.metadata.configs_image import ResourceType
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

SET: Final = 0


def configure_group(client: RawClient, group: str, values: Mapping[str, str]) -> None:
    """Set values of a group's configuration."""
    request = IncrementalAlterConfigsRequest
    changes = [request.AlterableConfig(key, SET, value) for key, value in values.items()]
    resource = request.AlterConfigsResource(ResourceType.GROUP, group, changes)
    response = client.ask(request([resource]), IncrementalAlterConfigsResponse, 1)
    (answered,) = response.responses
    assert answered.error_code == ErrorCode.NONE, answered.error_message
