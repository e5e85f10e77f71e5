"""The error of a leader that refuses a fetch or a write."""

from kvorum.wire.error_codes import ErrorCode


class LeaderRefusesError(Exception):
    """A refusal by the leader; `code` is the error code of the response."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(code.name)
        self.code = code
