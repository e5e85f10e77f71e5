"""A request that gives no time is late."""

from __future__ import annotations

import pytest

from kvorum.controller.deadlines import TIMED_KEYS, demand_time_left
from kvorum.metadata.request_error import RequestError
from kvorum.wire.apis import request_class
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.messages.update_features import UpdateFeaturesRequest

TIMEOUT = "timeout_ms"


@pytest.mark.parametrize("key", sorted(TIMED_KEYS))
@pytest.mark.parametrize("timeout_ms", [-(2**31), -1, 0])
def test_no_time_is_too_little(key: int, timeout_ms: int) -> None:
    request = request_class(key)()
    setattr(request, TIMEOUT, timeout_ms)
    with pytest.raises(RequestError) as caught:
        demand_time_left(request)
    assert (caught.value.code, caught.value.message) == (ErrorCode.REQUEST_TIMED_OUT, None)


@pytest.mark.parametrize("key", sorted(TIMED_KEYS))
def test_any_time_is_enough(key: int) -> None:
    request = request_class(key)()
    assert hasattr(request, TIMEOUT)
    setattr(request, TIMEOUT, 1)
    demand_time_left(request)


def test_other_requests_have_all_the_time() -> None:
    demand_time_left(UpdateFeaturesRequest(timeout_ms=0))
