"""Calls of the operator's policies, and the errors that clients get from them."""

import logging
from collections.abc import Callable

from kvorum.controller.policies import PolicyViolationError
from kvorum.metadata.request_error import RequestError
from kvorum.wire.error_codes import ErrorCode

_log = logging.getLogger(__name__)


def ask_policy(validate: Callable[[], None]) -> None:
    """Call a policy; raise `RequestError` with Kafka's error where the policy raises.

    A violation is answered with its own text. A policy may also refuse with any error of the
    protocol. Any other exception is a defect of the policy, whose text the client does not get.
    """
    try:
        validate()
    except PolicyViolationError as violation:
        message = str(violation) if violation.args else None
        raise RequestError(ErrorCode.POLICY_VIOLATION, message) from violation
    except RequestError:
        raise
    except Exception:  # noqa: BLE001 - the code is the operator's
        _log.exception("A policy failed, and what it was asked about is refused")
        raise RequestError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
