"""Calls that say which voters the quorum is to have (KIP-642)."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kvorum.cli.admin.client import Call
from kvorum.cli.admin.errors import refusal
from kvorum.cli.admin.quorum_calls import final
from kvorum.controller.quorum_reassignment.requests import (
    configuration_request,
    reassignment_request,
)
from kvorum.metadata.config_definitions import BROKER_CONFIGS, InvalidConfigError, parse_value
from kvorum.metadata.configs_image import CLUSTER_RESOURCE, ResourceType
from kvorum.metadata.topic_names import CLUSTER_METADATA_PARTITION, CLUSTER_METADATA_TOPIC
from kvorum.metadata.voters import TARGET_VOTERS, TargetVoters
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from kvorum.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kvorum.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

_Errors = Sequence[tuple[int, str | None]]
_FETCH_TIMEOUT: Final = BROKER_CONFIGS["controller.quorum.fetch.timeout.ms"]


@dataclass(frozen=True, slots=True)
class RecordedTargets:
    """The recorded target voters; `text` is None where the node that was asked hides it."""

    text: str | None


def reassign_call(
    replicas: Sequence[int] | None,
) -> Call[AlterPartitionReassignmentsResponse, None]:
    """Return the call that wants voters by their ids, or cancels with None."""

    def request(timeout_ms: int) -> AlterPartitionReassignmentsRequest:
        asked = reassignment_request(replicas)
        asked.timeout_ms = timeout_ms
        return asked

    def errors(response: AlterPartitionReassignmentsResponse) -> _Errors:
        partitions = (one for topic in response.responses for one in topic.partitions)
        whole = (response.error_code, response.error_message)
        return [whole, *((one.error_code, one.error_message) for one in partitions)]

    return Call(
        name="alterPartitionReassignments",
        request=request,
        response_class=AlterPartitionReassignmentsResponse,
        read=lambda response: _check(errors(response)),
        controller_codes=lambda response: dict(errors(response)),
    )


def set_targets_call(
    targets: TargetVoters | None, *, is_only_checked: bool = False
) -> Call[IncrementalAlterConfigsResponse, None]:
    """Return the call that wants voters by ids and directories, or only has them checked.

    With None it clears the target voters.
    """

    def request(_: int) -> IncrementalAlterConfigsRequest:
        asked = configuration_request(targets)
        asked.validate_only = is_only_checked
        return asked

    def errors(response: IncrementalAlterConfigsResponse) -> _Errors:
        return [(one.error_code, one.error_message) for one in response.responses]

    return Call(
        name="incrementalAlterConfigs",
        request=request,
        response_class=IncrementalAlterConfigsResponse,
        read=lambda response: _check(errors(response)),
        controller_codes=lambda response: dict(errors(response)),
    )


def _is_wanted(response: ListPartitionReassignmentsResponse) -> bool:
    _check([(response.error_code, response.error_message)])
    return bool(response.topics)


IS_REASSIGNMENT_WANTED: Final = Call(
    name="listPartitionReassignments",
    request=lambda timeout_ms: ListPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        topics=[
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                CLUSTER_METADATA_TOPIC, [CLUSTER_METADATA_PARTITION]
            )
        ],
    ),
    response_class=ListPartitionReassignmentsResponse,
    read=_is_wanted,
    controller_codes=lambda response: (response.error_code,),
)
"""Asks the active controller whether other voters are wanted."""


def _recorded_targets(response: DescribeConfigsResponse) -> RecordedTargets | None:
    for result in response.results:
        if result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return None
        if result.error_code != ErrorCode.NONE:
            raise final(refusal(result.error_code, result.error_message))
        for config in result.configs:
            if config.name == TARGET_VOTERS:
                return RecordedTargets(config.value)
    return None


RECORDED_TARGETS: Final = Call(
    name="describeConfigs",
    request=lambda _: DescribeConfigsRequest(
        [DescribeConfigsRequest.DescribeConfigsResource(*CLUSTER_RESOURCE, [TARGET_VOTERS])]
    ),
    response_class=DescribeConfigsResponse,
    read=_recorded_targets,
)
"""Reads the target voters where they are kept, None without any.

Every node answers it, real Kafka's as well; not to a client that may not see configurations.
"""


def fetch_timeout_call(node_id: int) -> Call[DescribeConfigsResponse, int | None]:
    """Return the call that asks a node for its fetch timeout, in milliseconds.

    Every controller, real Kafka's as well, describes its own configuration, and no other's. The
    result is None if another node was asked, or if the client may not see configurations.
    """

    def request(_: int) -> DescribeConfigsRequest:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            ResourceType.BROKER, str(node_id), [_FETCH_TIMEOUT.name]
        )
        return DescribeConfigsRequest([resource])

    def read(response: DescribeConfigsResponse) -> int | None:
        for result in response.results:
            for config in result.configs:
                if config.name == _FETCH_TIMEOUT.name:
                    return _milliseconds(config.value)
        return None

    return Call(
        name="describeConfigs", request=request, response_class=DescribeConfigsResponse, read=read
    )


def _milliseconds(text: str | None) -> int | None:
    with suppress(InvalidConfigError):
        value = None if text is None else parse_value(_FETCH_TIMEOUT, text)
        return value if isinstance(value, int) else None
    return None


def _check(errors: _Errors) -> None:
    """Raise the first error of a response."""
    for code, message in errors:
        if code != ErrorCode.NONE:
            raise final(refusal(code, message))
