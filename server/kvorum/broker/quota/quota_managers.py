"""The managers of a broker's client quotas, which follow the metadata (QuotaFactory)."""

from __future__ import annotations

from typing import Final

from kvorum.broker.quota.client_quota_manager import ClientQuotaManager, QuotaClient
from kvorum.broker.quota.rate import Rate, bounded_throttle_time_ms
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.client_quotas_image import ClientQuotasImage

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
PERCENT_PER_MS_AND_SECOND: Final = 100.0 / 1000.0


class ClientRequestQuotaManager(ClientQuotaManager):
    """Counts percent of one thread's time (KIP-124); no client waits for longer than one window."""

    def maybe_record_request_time(
        self, client: QuotaClient, thread_time_ms: float, now_ms: float
    ) -> int:
        """Record the time of a request; return for how long the client has to wait."""
        percentage = thread_time_ms * PERCENT_PER_MS_AND_SECOND
        return self.maybe_record_and_get_throttle_time_ms(client, percentage, now_ms)

    def _throttle_time_ms(self, rate: Rate, bound: float, now_ms: float) -> float:
        return bounded_throttle_time_ms(rate, bound, now_ms, max_ms=self.window_ms)


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
