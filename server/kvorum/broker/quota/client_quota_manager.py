"""The use that clients make of a quota, and how long they wait beyond it (ClientQuotaManager)."""

from dataclasses import dataclass
from typing import Final, NamedTuple

from kvorum.broker.quota.client_quotas import ClientQuotas, ClientTags, QuotaTypes
from kvorum.broker.quota.rate import Rate, bounded_throttle_time_ms, throttle_time_ms
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.client_quotas_image import ClientQuotasImage

UNLIMITED: Final = float(2**63 - 1)
"""The bound of a client without a quota."""
FORGET_AFTER_MS: Final = 3_600_000.0
"""The time without a request after which a client's use is forgotten, as in Kafka."""
THROTTLE_TIME_MS_MAX: Final = 2**31 - 1
"""The longest time that a response can carry."""
_MS_PER_S: Final = 1000.0
PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
PERCENT_PER_MS_AND_SECOND: Final = 100.0 / 1000.0


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
            self._forget(now_ms)
            rate = Rate(self._config)
            sensor = self._sensors[tags] = _QuotaSensor(rate, self._bound(tags))
        return sensor

    def _forget(self, now_ms: float) -> None:
        for tags, sensor in list(self._sensors.items()):
            if now_ms - sensor.rate.last_ms > FORGET_AFTER_MS:
                del self._sensors[tags]


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
