"""What every request for records is answered with, as long as partitions carry none."""

from __future__ import annotations

from typing import Final

from kvorum.wire.error_codes import ErrorCode

ERROR: Final = ErrorCode.INVALID_REQUEST
"""Not to be retried; its text blames a request "sent to an incompatible broker", which it was."""
MESSAGE: Final = "This node keeps the metadata of a cluster: its partitions carry no records."
