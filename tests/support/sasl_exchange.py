"""The frames of SASL, for an authenticator without a connection, and for a listener."""

from collections.abc import Iterable
from typing import Final, TypeVar

from tests.support.raw_client import RawClient

from kvorum.wire.headers import decode_response_frame, encode_request_frame
from kvorum.wire.primitives import Message

CORRELATION_ID: Final = 7
Response = TypeVar("Response", bound=Message)


def frame(request: Message, version: int) -> bytes:
    return encode_request_frame(
        request, version=version, correlation_id=CORRELATION_ID, client_id="c"
    )


def decoded(answer: bytes | None, kind: type[Response], version: int) -> Response:
    assert answer is not None
    header, response = decode_response_frame(answer, response_class=kind, version=version)
    assert header.correlation_id == CORRELATION_ID
    return response


def answers(port: int, frames: Iterable[bytes]) -> list[bytes | None]:
    """Return what answers each frame, None and nothing more at the end of the connection."""
    found: list[bytes | None] = []
    with RawClient(f"127.0.0.1:{port}") as client:
        for each in frames:
            client.send_frame(each)
            found.append(client.read_frame())
            if found[-1] is None:
                break
    return found
