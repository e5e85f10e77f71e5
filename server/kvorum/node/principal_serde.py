"""Principals as the bytes in an Envelope: Kafka's DefaultKafkaPrincipalBuilder as a serde."""

import struct

from kvorum.metadata.api import RequestError
from kvorum.metadata.standard_authorizer import Principal
from kvorum.wire.error_codes import ErrorCode
from kvorum.wire.errors import WireError
from kvorum.wire.messages.default_principal_data import DefaultPrincipalData

PRINCIPAL_VERSION = 0
_VERSION = struct.Struct(">h")


def encode_principal(principal: Principal) -> bytes:
    """Return the bytes of Kafka's default principal form."""
    data = DefaultPrincipalData(
        type=principal.type,
        name=principal.name,
        token_authenticated=principal.is_token_authenticated,
    )
    return _VERSION.pack(PRINCIPAL_VERSION) + data.encode(PRINCIPAL_VERSION)


def decode_principal(data: bytes) -> Principal:
    """Return the principal in an envelope; raises RequestError (97) for anything else."""
    if len(data) < _VERSION.size:
        raise _no_principal()
    (version,) = _VERSION.unpack_from(data)
    if not DefaultPrincipalData.MIN_VERSION <= version <= DefaultPrincipalData.MAX_VERSION:
        raise _no_principal()
    try:
        found = DefaultPrincipalData.decode(data[_VERSION.size :], version)
    except WireError as error:
        raise _no_principal() from error
    return Principal(found.type, found.name, found.token_authenticated)


def _no_principal() -> RequestError:
    return RequestError.with_default_message(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
