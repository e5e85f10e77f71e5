"""DescribeClientQuotas (48): the quotas of the entities that a filter matches (KIP-546)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from immutables import Map

from kvorum.broker.view_api import BrokerView, ViewApi
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.configs_image import QuotaEntity
from kvorum.metadata.image import MetadataImage
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES = frozenset({"user", "client-id", "ip"})


@dataclass(slots=True)
class _Filter:
    """The required name per entity type (None: the default), and the types that must be present."""

    exact: dict[str, str | None] = field(default_factory=dict[str, str | None])
    present: set[str] = field(default_factory=set[str])

    @property
    def types(self) -> set[str]:
        return self.exact.keys() | self.present

    def matches(self, entity: Mapping[str, str | None], *, is_strict: bool) -> bool:
        if is_strict and set(entity) != self.types:
            return False
        return self.types <= entity.keys() and all(
            entity[kind] == name for kind, name in self.exact.items()
        )


def describe_client_quotas(
    image: MetadataImage, request: DescribeClientQuotasRequest, _view: BrokerView
) -> DescribeClientQuotasResponse:
    """List the entities that match; raise `RequestError` for an invalid filter."""
    wanted = _read_filter(request.components)
    entries = [
        _entry(entity, values)
        for entity, values in sorted(image.client_quotas.entities.items(), key=_by_name)
        if wanted.matches(dict(entity), is_strict=request.strict)
    ]
    return DescribeClientQuotasResponse(entries=entries)


def _read_filter(components: Iterable[DescribeClientQuotasRequest.ComponentData]) -> _Filter:
    found = _Filter()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise invalid_request("Invalid empty entity type.")
        if kind in found.types:
            raise invalid_request(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in ENTITY_TYPES:
            raise RequestError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        _add(found, component)
    if "ip" in found.types and len(found.types) > 1:
        raise invalid_request(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return found


def _add(found: _Filter, component: DescribeClientQuotasRequest.ComponentData) -> None:
    kind, name = component.entity_type, component.match
    match component.match_type:
        case 0:  # the given name
            if name is None:
                raise invalid_request(
                    "Request specified MATCH_TYPE_EXACT, but set match string to null."
                )
            found.exact[kind] = name
        case 1:  # the default of the type
            _refuse_name(name, "MATCH_TYPE_DEFAULT")
            found.exact[kind] = None
        case 2:  # any name
            _refuse_name(name, "MATCH_TYPE_SPECIFIED")
            found.present.add(kind)
        case unknown:
            raise invalid_request(f"Unknown match type {unknown}")


def _refuse_name(name: str | None, match_type: str) -> None:
    if name is not None:
        raise invalid_request(f"Request specified {match_type}, but also specified a match string.")


def _entry(entity: QuotaEntity, values: Map[str, float]) -> DescribeClientQuotasResponse.EntryData:
    return DescribeClientQuotasResponse.EntryData(
        entity=[
            DescribeClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity
        ],
        values=[
            DescribeClientQuotasResponse.ValueData(key=key, value=value)
            for key, value in sorted(values.items())
        ],
    )


def _by_name(item: tuple[QuotaEntity, object]) -> list[tuple[str, str]]:
    return [(kind, name or "") for kind, name in item[0]]


def _refuse(
    _: DescribeClientQuotasRequest, error: RequestError, _version: int
) -> DescribeClientQuotasResponse:
    """Refuse the request; a missing permission has no text, not even which one it is."""
    is_not_allowed = error.code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return DescribeClientQuotasResponse(
        error_code=error.code, error_message=None if is_not_allowed else error.message, entries=None
    )


API: Final = ViewApi(
    request=DescribeClientQuotasRequest,
    permission=AclOperation.DESCRIBE_CONFIGS,
    answer=describe_client_quotas,
    refuse=_refuse,
)
