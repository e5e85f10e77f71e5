"""The errors of bytes from outside, and of messages that cannot be written.

::

    WireError
      DecodeError               bytes that are no such message
        CorruptBatchError       a record batch that is damaged
          BatchTooLargeError    a record batch that would unpack to more than is allowed
          DecompressionError    packed records that cannot be unpacked
          InvalidRecordError    a packed record that is larger than is allowed
      EncodeError               a message that cannot be written
        UnsupportedVersionError   not in this version
"""

from typing import ClassVar

from kvorum.wire.error_codes import ErrorCode


class WireError(Exception):
    """Base of all errors of the wire protocol; `error_code` is the code in a server's response."""

    error_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR


class DecodeError(WireError):
    """Bytes are not the expected message.

    `what` names the message or the part of it, `offset` is where reading stopped, -1 if unknown.
    """

    error_code = ErrorCode.INVALID_REQUEST

    def __init__(self, what: str, problem: str, *, offset: int = -1) -> None:
        place = f" at byte {offset}" if offset >= 0 else ""
        super().__init__(f"{what}{place}: {problem}")
        self.what = what
        self.problem = problem
        self.offset = offset


class CorruptBatchError(DecodeError):
    """A record batch whose length, checksum or content is wrong."""

    error_code = ErrorCode.CORRUPT_MESSAGE


class BatchTooLargeError(CorruptBatchError):
    """A record batch that would unpack to more than the reader allows."""

    error_code = ErrorCode.MESSAGE_TOO_LARGE


class DecompressionError(CorruptBatchError):
    """Packed records whose compressed bytes are damaged, or compressed in an unknown way."""


class InvalidRecordError(CorruptBatchError):
    """A packed record that is larger, when it is unpacked, than the reader allows."""

    error_code = ErrorCode.INVALID_RECORD


class EncodeError(WireError):
    """A message holds a value that its schema does not allow."""

    error_code = ErrorCode.INVALID_REQUEST


class UnsupportedVersionError(EncodeError):
    """A message does not exist in a version, or holds something that the version cannot carry."""

    error_code = ErrorCode.UNSUPPORTED_VERSION
