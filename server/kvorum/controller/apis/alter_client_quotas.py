"""AlterClientQuotas (49): sets and removes quotas of users, client ids and addresses."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType
from typing import Final

from immutables import Map

from kvorum.controller.api import ControllerApi, ControllerResult, check_record_count
from kvorum.controller.settings import ControllerRequestContext
from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.api import RequestError, invalid_request
from kvorum.metadata.configs_image import CLIENT_ID, IP, USER
from kvorum.metadata.image import MetadataImage
from kvorum.metadata.record_frame import RecordAndVersion
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
)
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord

KINDS: Final = (CLIENT_ID, USER, IP)
FRACTION_MAX: Final = 1e-6

Entity = dict[str, str | None]
"""The names of an entity by their types; None is a type's default."""


@dataclass(frozen=True, slots=True)
class QuotaKey:
    """A kind of quota: the name and upper bound of its integer type, None for fractions."""

    type_name: str | None = None
    value_max: int | None = None


LONG: Final = QuotaKey("a LONG", 2**63 - 1)
INT: Final = QuotaKey("an INT", 2**31 - 1)
DOUBLE: Final = QuotaKey()
CLIENT_KEYS: Final[Mapping[str, QuotaKey]] = MappingProxyType(
    {
        "producer_byte_rate": LONG,
        "consumer_byte_rate": LONG,
        "request_percentage": DOUBLE,
        "controller_mutation_rate": DOUBLE,
    }
)
IP_KEYS: Final[Mapping[str, QuotaKey]] = MappingProxyType({"connection_creation_rate": INT})


def alter_client_quotas(
    image: MetadataImage, request: AlterClientQuotasRequest, context: ControllerRequestContext
) -> ControllerResult[AlterClientQuotasResponse]:
    """Change the quotas of each entity on its own; the response has one result per entity.

    For an entity that is named twice the first entry applies, although its result is an error.
    """
    del context
    records: list[RecordAndVersion] = []
    answers: dict[tuple[tuple[str, str | None], ...], AlterClientQuotasResponse.EntryData] = {}
    for entry in request.entries:
        entity = _entity(entry)
        answer = _answer(entity)
        try:
            keys = [operation.key for operation in entry.ops]
            if _key(entity) in answers or len(set(keys)) != len(keys):
                raise invalid_request(f"Ignoring duplicate entity {_as_text(entity)}")
            records.extend(_changes(image, entry, entity))
        except RequestError as error:
            answer.error_code, answer.error_message = error.code, error.message
        answers[_key(entity)] = answer
    check_record_count(records)
    response = AlterClientQuotasResponse(entries=list(answers.values()))
    return ControllerResult(response, () if request.validate_only else tuple(records))


def _entity(entry: AlterClientQuotasRequest.EntryData) -> Entity:
    """Return the entity of an entry, its parts in Kafka's order."""
    entity = {part.entity_type: part.entity_name for part in entry.entity}
    return {kind: entity[kind] for kind in sorted(entity, key=_place)}


def _place(kind: str) -> tuple[int, str]:
    return (KINDS.index(kind) if kind in KINDS else len(KINDS)), kind


def _key(entity: Entity) -> tuple[tuple[str, str | None], ...]:
    return tuple(sorted(entity.items(), key=lambda part: part[0]))


def _as_text(entity: Entity) -> str:
    parts = ", ".join(f"{kind}={'null' if name is None else name}" for kind, name in entity.items())
    return f"ClientQuotaEntity(entries={{{parts}}})"


def _answer(entity: Entity) -> AlterClientQuotasResponse.EntryData:
    return AlterClientQuotasResponse.EntryData(
        error_code=ErrorCode.NONE,
        error_message=None,
        entity=[
            AlterClientQuotasResponse.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
    )


def _changes(
    image: MetadataImage, entry: AlterClientQuotasRequest.EntryData, entity: Entity
) -> list[RecordAndVersion]:
    """Return the records of one entity; raise `RequestError` unless all changes are accepted."""
    keys = _keys_of(entity)
    current = image.client_quotas.entities.get(_key(entity)) or Map[str, float]()
    records: list[RecordAndVersion] = []
    for operation in entry.ops:
        name = operation.key
        if operation.remove:
            if name in current:
                records.append((_record(entity, name, value=0.0, remove=True), 0))
            continue
        _check_value(keys, name, operation.value)
        if current.get(name) != operation.value:
            records.append((_record(entity, name, value=operation.value, remove=False), 0))
    return records


def _record(entity: Entity, key: str, *, value: float, remove: bool) -> ClientQuotaRecord:
    return ClientQuotaRecord(
        entity=[
            ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name)
            for kind, name in entity.items()
        ],
        key=key,
        value=value,
        remove=remove,
    )


def _keys_of(entity: Entity) -> Mapping[str, QuotaKey]:
    """Return the quotas that the entity may have, or refuse an invalid entity."""
    if not entity:
        raise invalid_request("Invalid empty client quota entity")
    for kind, name in entity.items():
        if kind not in KINDS:
            raise invalid_request(f"Unhandled client quota entity type: {kind}")
        if name is not None and not name:
            raise invalid_request(f"Empty {kind} not supported")
    if IP not in entity:
        return CLIENT_KEYS
    if len(entity) > 1:
        raise invalid_request(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    address = entity[IP]
    if address is not None and not _is_address(address):
        raise invalid_request(f"{address} is not a valid IP or resolvable host.")
    return IP_KEYS


def _is_address(text: str) -> bool:
    """Return whether `text` is an IP address; host names are not resolved here."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(keys: Mapping[str, QuotaKey], name: str, value: float) -> None:
    key = keys.get(name)
    if key is None:
        raise invalid_request(f"Invalid configuration key {name}")
    if not math.isfinite(value):
        raise invalid_request(f"Quota {name} must be a finite number")
    if value <= 0.0:
        raise invalid_request(f"Quota {name} must be greater than 0")
    if key.value_max is None:
        return
    if value > float(key.value_max):
        raise invalid_request(f"Proposed value for {name} is too large for {key.type_name}.")
    if abs(value % 1.0) > FRACTION_MAX:
        raise invalid_request(f"{name} cannot be a fractional value.")


def _refuse(
    request: AlterClientQuotasRequest, error: RequestError, _version: int
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            AlterClientQuotasResponse.EntryData(
                error_code=error.code,
                error_message=error.code.default_message,
                entity=[
                    AlterClientQuotasResponse.EntityData(part.entity_type, part.entity_name)
                    for part in entry.entity
                ],
            )
            for entry in request.entries
        ]
    )


API: Final = ControllerApi(
    request=AlterClientQuotasRequest,
    permission=AclOperation.ALTER_CONFIGS,
    decide=alter_client_quotas,
    refuse=_refuse,
)
