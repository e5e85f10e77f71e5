"""SCRAM credentials of ``--add-scram``: ``SCRAM-SHA-256=[name=alice,password=secret]``."""

import hashlib
import hmac
import random
import string
from collections.abc import Mapping
from typing import Final

from kvorum.metadata.credentials_image import SCRAM_DIGESTS, SCRAM_ITERATIONS_MIN, ScramMechanism
from kvorum.node.errors import FormatError
from kvorum.wire.java_base64 import decode_java_base64
from kvorum.wire.java_text import java_trim, parse_java_integer
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord

_ITERATIONS_DEFAULT = 4096
_ITERATIONS_MAX = 16384
_SALT_BITS = 130
_SALT_DIGITS = string.digits + string.ascii_lowercase
_PARTS = ("name", "salt", "iterations", "password", "saltedpassword")


_MECHANISMS: Final = {mechanism.mechanism_name: mechanism for mechanism in SCRAM_DIGESTS}


def parse_scram_credential(
    argument: str, *, random_source: random.Random
) -> UserScramCredentialRecord:
    """Return the record for one ``--add-scram`` argument.

    Without a salt in the argument, `random_source` gives one; it must be a secure source outside
    of tests.
    """
    mechanism, parts = _parse_argument(argument)
    name = parts.get("name")
    if name is None:
        raise FormatError("You must supply 'name' to add-scram")
    given_salt = _given_salt(parts)
    iterations = _given_iterations(parts)
    given_password = _given_salted_password(parts)
    unknown = sorted(parts.keys() - set(_PARTS))
    if unknown:
        raise FormatError(f"Unknown SCRAM configurations: {', '.join(unknown)}")
    _check_iterations(mechanism, iterations)
    salt = _random_salt(random_source) if given_salt is None else given_salt
    salted = given_password
    if salted is None:
        salted = hashlib.pbkdf2_hmac(
            SCRAM_DIGESTS[mechanism], parts["password"].encode(), salt, iterations
        )
    return _record(mechanism, name, salt=salt, iterations=iterations, salted_password=salted)


def _record(
    mechanism: ScramMechanism, name: str, *, salt: bytes, iterations: int, salted_password: bytes
) -> UserScramCredentialRecord:
    """Return the record, with the two keys of RFC 5802 derived from the salted password."""
    hash_name = SCRAM_DIGESTS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", hash_name)
    return UserScramCredentialRecord(
        name=name,
        mechanism=mechanism.value,
        salt=salt,
        stored_key=hashlib.new(hash_name, client_key).digest(),
        server_key=hmac.digest(salted_password, b"Server Key", hash_name),
        iterations=iterations,
    )


def _parse_argument(argument: str) -> tuple[ScramMechanism, dict[str, str]]:
    argument = java_trim(argument)
    name, equals, setting = argument.partition("=")
    if not equals:
        raise FormatError(f"Failed to find equals sign in SCRAM argument '{argument}'")
    if name not in _MECHANISMS:
        raise FormatError(f"The add-scram mechanism {name} is not supported.")
    if not setting.startswith("["):
        raise FormatError("Expected configuration string to start with [")
    if not setting.endswith("]"):
        raise FormatError("Expected configuration string to end with ]")
    # Java's split drops empty pieces at the end, but always keeps one piece.
    return _MECHANISMS[name], dict(map(_parse_part, setting[1:-1].rstrip(",").split(",")))


def _parse_part(piece: str) -> tuple[str, str]:
    name, equals, value = piece.partition("=")
    if not equals:
        raise FormatError(f"No equals sign found in SCRAM component: {piece}")
    if len(value) >= 2 and value.startswith('"') and value.endswith('"'):
        value = value[1:-1]
    return name, value


def _given_salt(parts: Mapping[str, str]) -> bytes | None:
    if "salt" not in parts:
        return None
    try:
        return decode_java_base64(parts["salt"])
    except ValueError:
        raise FormatError(f"Failed to decode given salt: {parts['salt']}") from None


def _given_iterations(parts: Mapping[str, str]) -> int:
    if "iterations" not in parts:
        return _ITERATIONS_DEFAULT
    try:
        return parse_java_integer(parts["iterations"], bits=32)
    except ValueError:
        raise FormatError(f"Failed to parse iterations count: {parts['iterations']}") from None


def _given_salted_password(parts: Mapping[str, str]) -> bytes | None:
    if "password" in parts:
        return None
    if "saltedpassword" not in parts:
        raise FormatError("You must supply one of 'password' or 'saltedpassword' to add-scram")
    if "salt" not in parts:
        raise FormatError("You must supply 'salt' with 'saltedpassword' to add-scram")
    text = parts["saltedpassword"]
    try:
        return decode_java_base64(text)
    except ValueError:
        raise FormatError(f"Failed to decode given saltedPassword: {text}") from None


def _check_iterations(mechanism: ScramMechanism, iterations: int) -> None:
    if iterations < SCRAM_ITERATIONS_MIN:
        relation, limit = ">=", SCRAM_ITERATIONS_MIN
    elif iterations > _ITERATIONS_MAX:
        relation, limit = "<=", _ITERATIONS_MAX
    else:
        return
    raise FormatError(
        f"The 'iterations' value must be {relation} {limit} for add-scram using {mechanism.name}"
    )


def _random_salt(random_source: random.Random) -> bytes:
    """Return a random number of 130 bits in base 36, as text."""
    number, digits = random_source.getrandbits(_SALT_BITS), ""
    while number or not digits:
        number, digit = divmod(number, len(_SALT_DIGITS))
        digits = _SALT_DIGITS[digit] + digits
    return digits.encode()
