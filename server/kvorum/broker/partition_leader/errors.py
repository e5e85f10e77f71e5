"""Why a leader refuses a fetch or a write."""

from __future__ import annotations

from kvorum.wire.error_codes import ErrorCode


class LeaderRefusesError(Exception):
    """The leader does not do what it is asked for; `code` is what to answer."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code
