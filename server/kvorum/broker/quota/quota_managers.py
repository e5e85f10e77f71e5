"""The managers of a broker's client quotas, which follow the metadata (QuotaFactory)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kvorum.broker.quota.client_quota_manager import ClientQuotaManager
from kvorum.broker.quota.client_request_quota_manager import ClientRequestQuotaManager
from kvorum.broker.quota.sampled_stat import MetricConfig
from kvorum.metadata.client_quotas_image import ClientQuotasImage

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"


class QuotaManagers:
    """Three quotas: of bytes produced, of bytes fetched, and of the time that requests take."""

    def __init__(self, config: MetricConfig, quotas: Callable[[], ClientQuotasImage]) -> None:
        self._image = quotas
        self._followed = ClientQuotasImage()
        self._produce = ClientQuotaManager(PRODUCER_BYTE_RATE, config)
        self._fetch = ClientQuotaManager(CONSUMER_BYTE_RATE, config)
        self._request = ClientRequestQuotaManager(REQUEST_PERCENTAGE, config)

    @property
    def produce(self) -> ClientQuotaManager:
        """The quota of what clients produce."""
        self._follow()
        return self._produce

    @property
    def fetch(self) -> ClientQuotaManager:
        """The quota of what clients fetch."""
        self._follow()
        return self._fetch

    @property
    def request(self) -> ClientRequestQuotaManager:
        """The quota of the time that clients' requests take."""
        self._follow()
        return self._request

    def _follow(self) -> None:
        image = self._image()
        if image is not self._followed:
            self._followed = image
            for manager in (self._produce, self._fetch, self._request):
                manager.update_quotas(image)
