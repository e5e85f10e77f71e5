"""The frame of a response, even if an error message in it is too long for the protocol."""

from collections.abc import Sequence
from typing import Final

from kvorum.wire.errors import EncodeError
from kvorum.wire.headers import encode_response_parts
from kvorum.wire.json_form import fields_of
from kvorum.wire.primitives import STRING_BYTES_MAX, Message, Struct

ERROR_MESSAGE: Final = "error_message"


def encode_answer(response: Message, *, version: int, correlation_id: int) -> bytes:
    """Return the frame of `response`, with all records in memory; see `encode_answer_parts`."""
    return b"".join(encode_answer_parts(response, version=version, correlation_id=correlation_id))


def encode_answer_parts(
    response: Message, *, version: int, correlation_id: int
) -> Sequence[bytes | memoryview]:
    """Return the frame of `response` in parts; records are parts of their own.

    An error message that quotes a name of maximum length is itself longer than a string can be.
    Such a message is cut; Kafka answers such requests with UNKNOWN_SERVER_ERROR.
    """
    try:
        return encode_response_parts(response, version=version, correlation_id=correlation_id)
    except EncodeError:
        cut_error_messages(response)
        return encode_response_parts(response, version=version, correlation_id=correlation_id)


def cut_error_messages(value: Struct) -> None:
    """Cut every error message inside `value` to the maximum length of a string."""
    for field in fields_of(type(value)):
        own: str | Struct | list[object] | None = getattr(value, field.attribute)
        if field.attribute == ERROR_MESSAGE and isinstance(own, str):
            cut = own.encode()[:STRING_BYTES_MAX].decode(errors="ignore")
            setattr(value, field.attribute, cut)
        for inner in own if isinstance(own, list) else [own]:
            if isinstance(inner, Struct):
                cut_error_messages(inner)
