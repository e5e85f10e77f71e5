"""The current values of the metrics of requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvorum.node.metrics import broker_catalogue as catalogue
from kvorum.node.metrics.names import Reading
from kvorum.node.serving.request_metrics import RequestChannelMetrics, RequestMetrics
from kvorum.wire.error_codes import ErrorCode

_ERROR_NAMES: Final = {int(code): code.name for code in ErrorCode}


def request_readings(metrics: RequestChannelMetrics) -> Iterator[Reading]:
    """Yield the values of each kind of requests that there have been."""
    for name, requests in metrics.by_name.items():
        yield from _of(name, requests)


def _of(name: str, requests: RequestMetrics) -> Iterator[Reading]:
    for version, count in requests.by_version.items():
        yield catalogue.REQUESTS.reading("RequestsPerSec", count, name, version)
    for code, count in requests.errors.items():
        error = _ERROR_NAMES.get(code, str(code))
        yield catalogue.REQUEST_ERRORS.reading("ErrorsPerSec", count, name, error)
    group, times = catalogue.REQUEST_TIMES, requests.times
    yield group.reading("TotalTimeMs", times.total_time, name)
    yield group.reading("LocalTimeMs", times.local_time, name)
    yield group.reading("RemoteTimeMs", times.remote_time, name)
    yield group.reading("ResponseSendTimeMs", times.send_time, name)
    yield group.reading("ThrottleTimeMs", times.throttle_time, name)
    yield group.reading("RequestBytes", times.request_bytes, name)
