"""The quota of the time that requests take (KIP-124): Kafka's ClientRequestQuotaManager."""

from __future__ import annotations

from typing import Final

from kvorum.broker.quota.client_quota_manager import ClientQuotaManager, QuotaClient
from kvorum.broker.quota.quota_utils import bounded_throttle_time_ms
from kvorum.broker.quota.rate import Rate

PERCENT_PER_MS_AND_SECOND: Final = 100.0 / 1000.0


class ClientRequestQuotaManager(ClientQuotaManager):
    """Counts percent of one thread's time; nobody waits for longer than one window."""

    def maybe_record_request_time(
        self, client: QuotaClient, thread_time_ms: float, now_ms: float
    ) -> int:
        """Record the time of a request; return for how long the client has to wait."""
        percentage = thread_time_ms * PERCENT_PER_MS_AND_SECOND
        return self.maybe_record_and_get_throttle_time_ms(client, percentage, now_ms)

    def _throttle_time_ms(self, rate: Rate, bound: float, now_ms: float) -> float:
        return bounded_throttle_time_ms(rate, bound, now_ms, max_ms=self.window_ms)
