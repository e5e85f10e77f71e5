"""The managers of a broker's client quotas, which follow the metadata (QuotaFactory)."""

from __future__ import annotations

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
