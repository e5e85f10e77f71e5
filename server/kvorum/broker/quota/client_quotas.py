"""The choice of the quota that counts for a client (the default ClientQuotaCallback of Kafka)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag
from types import MappingProxyType
from typing import NamedTuple

from kvorum.metadata.client_quotas_image import CLIENT_ID, USER, ClientQuotasImage


class QuotaTypes(Flag):
    """The kinds of entities that have a quota; Kafka's constants, and their values."""

    NO_QUOTAS = 0
    CLIENT_ID_QUOTA_ENABLED = 1
    USER_QUOTA_ENABLED = 2
    USER_CLIENT_ID_QUOTA_ENABLED = 4


class ClientTags(NamedTuple):
    """The clients that share one quota: of a user, of a client id, or of both; one may be empty."""

    user: str
    client_id: str


class _Default:
    """The name of the default entity, which no user and no client id has."""


_DEFAULT = _Default()
_Name = str | _Default | None
_Entity = tuple[_Name, _Name]
"""User and client id of an entity; None for a part that it does not have."""


class ClientQuotas:
    """The values of one quota, by entity."""

    def __init__(self, bounds: Mapping[_Entity, float]) -> None:
        self._bounds = bounds
        self.types = QuotaTypes.NO_QUOTAS
        for user, client_id in bounds:
            self.types |= _type_of(user, client_id)

    @classmethod
    def of(cls, image: ClientQuotasImage, key: str) -> ClientQuotas:
        """Return the values of the quota called `key`, those of addresses left out."""
        bounds: dict[_Entity, float] = {}
        for entity, values in image.entities.items():
            parts = dict(entity)
            if key in values and parts and parts.keys() <= {USER, CLIENT_ID}:
                bounds[_name_of(parts, USER), _name_of(parts, CLIENT_ID)] = values[key]
        return cls(MappingProxyType(bounds))

    def tags(self, user: str, client_id: str) -> ClientTags:
        """Return the clients that a client shares its quota with."""
        match self.types:
            case QuotaTypes.NO_QUOTAS | QuotaTypes.CLIENT_ID_QUOTA_ENABLED:
                return ClientTags("", client_id)
            case QuotaTypes.USER_QUOTA_ENABLED:
                return ClientTags(user, "")
            case QuotaTypes.USER_CLIENT_ID_QUOTA_ENABLED:
                return ClientTags(user, client_id)
            case _:
                return self._tags_by_precedence(user, client_id)

    def limit(self, tags: ClientTags) -> float | None:
        """Return the quota of those who share `tags`, None if they have none."""
        user, client_id = tags
        if user and client_id:
            return self._first(
                (user, client_id), (user, _DEFAULT), (_DEFAULT, client_id), (_DEFAULT, _DEFAULT)
            )
        if user:
            return self._first((user, None), (_DEFAULT, None))
        if client_id:
            return self._first((None, client_id), (None, _DEFAULT))
        return None

    def _tags_by_precedence(self, user: str, client_id: str) -> ClientTags:
        both, of_user = ClientTags(user, client_id), ClientTags(user, "")
        # The most specific entity counts, and those of a user before those of a client id.
        for entity, tags in (
            ((user, client_id), both),
            ((user, _DEFAULT), both),
            ((user, None), of_user),
            ((_DEFAULT, client_id), both),
            ((_DEFAULT, _DEFAULT), both),
            ((_DEFAULT, None), of_user),
        ):
            if entity in self._bounds:
                return tags
        return ClientTags("", client_id)

    def _first(self, *entities: _Entity) -> float | None:
        return next((self._bounds[one] for one in entities if one in self._bounds), None)


def _name_of(parts: Mapping[str, str | None], entity_type: str) -> _Name:
    if entity_type not in parts:
        return None
    name = parts[entity_type]
    return _DEFAULT if name is None else name


def _type_of(user: _Name, client_id: _Name) -> QuotaTypes:
    if user is None:
        return QuotaTypes.CLIENT_ID_QUOTA_ENABLED
    if client_id is None:
        return QuotaTypes.USER_QUOTA_ENABLED
    return QuotaTypes.USER_CLIENT_ID_QUOTA_ENABLED
