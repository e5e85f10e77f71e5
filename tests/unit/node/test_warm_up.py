"""What a controller in waiting imports beforehand: all that its first requests would."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import asyncio, sys
from kvorum.controller import requests
from kvorum.controller.refusals import refusal
from kvorum.metadata.request_error import RequestError
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.controller.warm_up import warm_up
from kvorum.wire.apis import METADATA_RECORDS, record_class, request_class, response_class
from kvorum.wire.error_codes import ErrorCode

asyncio.run(warm_up(wait_seconds=0, pause_seconds=0))
before = set(sys.modules)
for key, api in controller_apis().items():
    api.find_handler()
    request_class(key), response_class(key)
for key in requests.HANDLERS:
    requests.handler_of(key)
    error = RequestError(ErrorCode.NOT_CONTROLLER, "")
    refusal(request_class(key)(), error, api_version=0)
for key in METADATA_RECORDS:
    record_class(key)
print(sorted(set(sys.modules) - before))
"""


def test_the_first_requests_have_nothing_left_to_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
