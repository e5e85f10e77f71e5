"""The modules that a controller in waiting imports: all that its first requests would."""

import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, sys
from kvorum.controller.requests import controller_apis as decided_apis
from kvorum.metadata.request_error import RequestError
from kvorum.node.handlers.registry import controller_apis
from kvorum.node.warm_up import warm_up
from kvorum.wire.apis import METADATA_RECORDS, record_class, request_class, response_class
from kvorum.wire.error_codes import ErrorCode

asyncio.run(warm_up(wait_seconds=0, pause_seconds=0))
before = set(sys.modules)
error = RequestError(ErrorCode.NOT_CONTROLLER, "")
for key, served in controller_apis().items():
    served.load().refuse(request_class(key)(), error, served.max_version)
    response_class(key)
for load in decided_apis().values():
    load()
for key in METADATA_RECORDS:
    record_class(key)
print(sorted(set(sys.modules) - before))
"""


@pytest.mark.process
def test_the_first_requests_have_nothing_left_to_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
