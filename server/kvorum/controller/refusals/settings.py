"""Refusals of requests about configurations, quotas and credentials."""

from __future__ import annotations

from kvorum.metadata.request_error import RequestError
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntityData,
    AlterClientQuotasResponseEntryData,
)
from kvorum.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResponseAlterConfigsResourceResponse,
)
from kvorum.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResponseAlterUserScramCredentialsResult,
)
from kvorum.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    IncrementalAlterConfigsResponseAlterConfigsResourceResponse,
)


def alter_configs(request: AlterConfigsRequest, error: RequestError) -> AlterConfigsResponse:
    """Refuse AlterConfigs."""
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResponseAlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, error: RequestError
) -> IncrementalAlterConfigsResponse:
    """Refuse IncrementalAlterConfigs."""
    return IncrementalAlterConfigsResponse(
        responses=[
            IncrementalAlterConfigsResponseAlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource in request.resources
        ]
    )


def alter_client_quotas(
    request: AlterClientQuotasRequest, error: RequestError
) -> AlterClientQuotasResponse:
    """Refuse AlterClientQuotas."""
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponseEntryData(
                error_code=error.code,
                error_message=error.code.default_message,
                entity=[
                    AlterClientQuotasResponseEntityData(part.entity_type, part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, error: RequestError
) -> AlterUserScramCredentialsResponse:
    """Refuse AlterUserScramCredentials."""
    users = {deletion.name for deletion in request.deletions}
    users |= {upsertion.name for upsertion in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResponseAlterUserScramCredentialsResult(
                user=user, error_code=error.code, error_message=error.message
            )
            for user in sorted(users)
        ]
    )
