"""The quota that counts for a client, the use of it, and the wait beyond it (ClientQuotaManager).

The choice is that of Kafka's default ClientQuotaCallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.broker.quota.rate import MetricConfig, Rate, bounded_throttle_time_ms, throttle_time_ms
from kvorum.metadata.configs_image import CLIENT_ID, USER, ClientQuotasImage
from kvorum.metadata.unused_quotas import UnusedQuotas

UNLIMITED: Final = float(2**63 - 1)
"""The bound of a client without a quota."""
THROTTLE_TIME_MS_MAX: Final = 2**31 - 1
"""The longest time that a response can carry."""
_MS_PER_S: Final = 1000.0
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
PERCENT_PER_MS_AND_SECOND: Final = 100.0 / 1000.0


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


class QuotaClient(NamedTuple):
    """The client of a request; without a client id it is empty."""

    user: str
    client_id: str


@dataclass(slots=True)
class _QuotaSensor:
    rate: Rate
    bound: float


class ClientQuotaManager:
    """The clients' rates under the quota called `key`; without quotas nothing is recorded."""

    def __init__(self, key: str, config: MetricConfig) -> None:
        self._key = key
        self._config = config
        self._quotas = ClientQuotas({})
        self._sensors: dict[ClientTags, _QuotaSensor] = {}
        self._unused = UnusedQuotas()

    @property
    def quotas_enabled(self) -> bool:
        """Whether any client has a quota."""
        return self._quotas.types is not QuotaTypes.NO_QUOTAS

    def update_quotas(self, image: ClientQuotasImage) -> None:
        """Let the quotas of `image` count from now on; what was used before is kept."""
        self._quotas = ClientQuotas.of(image, self._key)
        for tags, sensor in self._sensors.items():
            sensor.bound = self._bound(tags)

    def maybe_record_and_get_throttle_time_ms(
        self, client: QuotaClient, value: float, now_ms: float
    ) -> int:
        """Record `value`; return for how long the client has to wait, 0 within its quota."""
        if not self.quotas_enabled:
            return 0
        sensor = self._sensor(client, now_ms)
        at_ms = max(now_ms, sensor.rate.last_ms)
        sensor.rate.record(value, at_ms)
        throttle_ms = self._throttle_time_ms(sensor.rate, sensor.bound, at_ms)
        return int(min(throttle_ms, THROTTLE_TIME_MS_MAX))

    def unrecord_quota_sensor(self, client: QuotaClient, value: float, now_ms: float) -> None:
        """Take back what was recorded a moment ago, because the client does not get it."""
        rate = self._sensor(client, now_ms).rate
        rate.record(-value, max(now_ms, rate.last_ms))

    def max_value_in_quota_window(self, client: QuotaClient) -> float:
        """Return the value above which even a client that has used nothing has to wait."""
        limit = self._quotas.limit(self._quotas.tags(*client))
        if limit is None:
            return UNLIMITED
        return limit * (self._config.sample_count - 1) * (self._config.window_ms / _MS_PER_S)

    def _throttle_time_ms(self, rate: Rate, bound: float, now_ms: float) -> float:
        return throttle_time_ms(rate, bound, now_ms)

    def _bound(self, tags: ClientTags) -> float:
        limit = self._quotas.limit(tags)
        return UNLIMITED if limit is None else limit

    def _sensor(self, client: QuotaClient, now_ms: float) -> _QuotaSensor:
        tags = self._quotas.tags(*client)
        sensor = self._sensors.get(tags)
        if sensor is None:
            self._unused.forget(self._sensors, lambda known: known.rate.last_ms, now_ms)
            sensor = self._sensors[tags] = _QuotaSensor(Rate(self._config), self._bound(tags))
        return sensor


class ClientRequestQuotaManager(ClientQuotaManager):
    """Counts percent of one thread's time (KIP-124); no client waits for longer than one window."""

    def maybe_record_request_time(
        self, client: QuotaClient, thread_time_ms: float, now_ms: float
    ) -> int:
        """Record the time of a request; return for how long the client has to wait."""
        percentage = thread_time_ms * PERCENT_PER_MS_AND_SECOND
        return self.maybe_record_and_get_throttle_time_ms(client, percentage, now_ms)

    def _throttle_time_ms(self, rate: Rate, bound: float, now_ms: float) -> float:
        return bounded_throttle_time_ms(rate, bound, now_ms, max_ms=self._config.window_ms)


class QuotaManagers:
    """Three quotas: of bytes produced, of bytes fetched, and of the time that requests take."""

    def __init__(self, config: MetricConfig) -> None:
        self.produce = ClientQuotaManager(PRODUCER_BYTE_RATE, config)
        """The quota of what clients produce."""
        self.fetch = ClientQuotaManager(CONSUMER_BYTE_RATE, config)
        """The quota of what clients fetch."""
        self.request = ClientRequestQuotaManager(REQUEST_PERCENTAGE, config)
        """The quota of the time that clients' requests take."""
        self._followed = ClientQuotasImage()

    def update(self, image: ClientQuotasImage) -> None:
        """Use the quotas of an image; the owner calls this with each that is published."""
        if image is not self._followed:
            self._followed = image
            for manager in (self.produce, self.fetch, self.request):
                manager.update_quotas(image)
