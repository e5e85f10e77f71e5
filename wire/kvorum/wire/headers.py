"""Headers of requests and responses, and whole frames.

A frame is a header and a body. On a connection an int32 size precedes it; the size does not count
itself. Frames here are without it, except where a name or a docstring mentions the size.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, TypeVar

from kvorum.wire.api_keys import ApiKey
from kvorum.wire.apis import API_SPECS
from kvorum.wire.errors import DecodeError, UnsupportedVersionError
from kvorum.wire.messages.request_header import RequestHeader
from kvorum.wire.messages.response_header import ResponseHeader

if TYPE_CHECKING:
    from kvorum.wire.primitives import Message

Response = TypeVar("Response", bound="Message")
_KEY_AND_VERSION = struct.Struct(">hh")
_SIZE = struct.Struct(">i")
_CORRELATION_ID = struct.Struct(">i")
_AFTER_CORRELATION_ID = tuple(
    ResponseHeader().encode(version)[_CORRELATION_ID.size :]
    for version in range(ResponseHeader.MAX_VERSION + 1)
)
"""The rest of a response's header, by its version: it has no other field."""


def request_header_version(key: int, version: int) -> int:
    """Return the version of the header before a request: 2 if it is flexible, else 1."""
    return 2 if version >= _flexible_from(key) else 1


def response_header_version(key: int, version: int) -> int:
    """Return the version of the header before a response.

    ApiVersions responses always use version 0: the client does not know the server's versions yet.
    """
    if key == ApiKey.API_VERSIONS:
        return 0
    return 1 if version >= _flexible_from(key) else 0


def decode_request_header(frame: bytes) -> tuple[RequestHeader, int]:
    """Return the header of a request frame, and where its body starts.

    Raises `UnsupportedVersionError` for an API key that does not exist, `DecodeError` for bytes
    that are no header. The API version is not checked, so that ApiVersions can answer any.
    """
    if len(frame) < _KEY_AND_VERSION.size:
        raise DecodeError("RequestHeader", "ends too early", offset=len(frame))
    key, version = _KEY_AND_VERSION.unpack_from(frame, 0)
    return RequestHeader.decode_from(frame, 0, request_header_version(key, version))


def decode_request_frame(frame: bytes) -> tuple[RequestHeader, memoryview]:
    """Return the header of a request frame and a view of its body."""
    header, end = decode_request_header(frame)
    return header, memoryview(frame)[end:]


def encode_request_frame(
    request: Message, *, version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Return header and body of a request."""
    key = _key_of(request)
    header = RequestHeader(key, version, correlation_id, client_id)
    return header.encode(request_header_version(key, version)) + request.encode(version)


def encode_response_frame(response: Message, *, version: int, correlation_id: int) -> bytes:
    """Return header and body of a response."""
    header = encode_response_header(_key_of(response), version, correlation_id)
    return header + response.encode(version)


def encode_response_parts(
    response: Message, *, version: int, correlation_id: int
) -> list[bytes | memoryview]:
    """Return header and body of a response in pieces; see `Message.encode_parts`."""
    header = encode_response_header(_key_of(response), version, correlation_id)
    return [header, *response.encode_parts(version)]


def encode_response_header(key: int, version: int, correlation_id: int) -> bytes:
    """Return the header before the response of an API in `version`."""
    header_version = response_header_version(key, version)
    return _CORRELATION_ID.pack(correlation_id) + _AFTER_CORRELATION_ID[header_version]


def decode_response_frame(
    frame: bytes, *, response_class: type[Response], version: int
) -> tuple[ResponseHeader, Response]:
    """Return header and body of a response frame; raises `DecodeError`."""
    key = response_class.API_KEY
    if key is None:
        raise TypeError(f"{response_class.NAME} is no response")
    header, end = ResponseHeader.decode_from(frame, 0, response_header_version(key, version))
    response, body_end = response_class.decode_from(frame, end, version)
    if body_end != len(frame):
        raise DecodeError(
            response_class.NAME, f"{len(frame) - body_end} bytes too many", offset=body_end
        )
    return header, response


class FrameSizeError(DecodeError):
    """A size before a frame that no frame here has."""

    def __init__(self, size: int) -> None:
        super().__init__("frame", f"a frame of {size} bytes")
        self.size = size


def take_frame(received: bytearray, *, bytes_min: int = 0, bytes_max: int) -> bytes | None:
    """Remove the first frame from what a connection has received; None while it is incomplete.

    The frame is returned without its size. Raises `FrameSizeError`, and removes nothing, for a size
    outside of the limits.
    """
    if len(received) < _SIZE.size:
        return None
    (size,) = _SIZE.unpack_from(received)
    if not bytes_min <= size <= bytes_max:
        raise FrameSizeError(size)
    end = _SIZE.size + size
    if len(received) < end:
        return None
    frame = bytes(memoryview(received)[_SIZE.size : end])
    del received[:end]
    return frame


def with_size(frame: bytes) -> bytes:
    """Return the frame for a connection, preceded by its size."""
    return _SIZE.pack(len(frame)) + frame


def _flexible_from(key: int) -> int:
    spec = API_SPECS.get(key)
    if spec is None:
        raise UnsupportedVersionError(f"there is no API with key {key}")
    return spec.flexible_from


def _key_of(message: Message) -> int:
    if message.API_KEY is None:
        raise TypeError(f"{message.NAME} is no request or response")
    return message.API_KEY
