"""Limits on the records that one request may write."""

from collections.abc import Sized

from kvorum.controller.api import MAX_RECORDS_PER_USER_OPERATION
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode


def check_record_count(records: Sized) -> None:
    """Raise `RequestError` POLICY_VIOLATION for more records than the limit of one request."""
    if len(records) > MAX_RECORDS_PER_USER_OPERATION:
        raise RequestError(
            ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
        )
