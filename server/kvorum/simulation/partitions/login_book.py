"""The book of users: what the committed metadata say of them at each offset, and their passwords.

It reads the records themselves, so that no image is believed.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from hashlib import pbkdf2_hmac
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from kvorum.metadata.acl_codes import AclOperation
from kvorum.metadata.credentials_image import SCRAM_ITERATIONS_MIN
from kvorum.metadata.standard_authorizer import USER_TYPE, Principal
from kvorum.simulation.committed_metadata import CommittedMetadata
from kvorum.simulation.partitions.login_settings import LoginSettings
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.primitives import Message

Value = TypeVar("Value")
_OFFSET: Final = itemgetter(0)


class Login(NamedTuple):
    """A user, and the password that a client knows."""

    user: str
    password: str


class Stored(NamedTuple):
    """A password as the metadata have it: salted and hashed."""

    salt: bytes
    salted_password: bytes

    @classmethod
    def of(cls, password: str) -> "Stored":
        """Return what is stored of a password, whose salt it names here."""
        return _stored(password)


@cache
def _stored(password: str) -> Stored:
    salt = b"salt of " + password.encode()
    return Stored(salt, pbkdf2_hmac("sha256", password.encode(), salt, SCRAM_ITERATIONS_MIN))


class _Timeline(Generic[Value]):
    """The values of one thing, each from an offset on."""

    def __init__(self, first: Value) -> None:
        self._values: list[tuple[int, Value]] = [(-1, first)]

    @property
    def latest(self) -> Value:
        """The last value."""
        return self._values[-1][1]

    def add(self, offset: int, value: Value) -> None:
        """Add the value from an offset on."""
        self._values.append((offset, value))

    def at(self, offset: int) -> Value:
        """Return the value for a broker that has applied all up to an offset."""
        return self._values[bisect_right(self._values, offset, key=_OFFSET) - 1][1]


class LoginBook:
    """The salts and permissions of all users by offset, and the logins that clients have tried.

    A permission is an operation on the topic that stays.
    """

    def __init__(self, settings: LoginSettings, committed: CommittedMetadata) -> None:
        self.settings = settings
        self.attempts: dict[str, Login] = {}
        """The logins by the nonces of their clients."""
        self._committed = committed
        self._entries: dict[bytes, tuple[str, AclOperation]] = {}
        self._salts = defaultdict[str, _Timeline[bytes | None]](_no_salt)
        self._permissions = defaultdict[str, _Timeline[frozenset[AclOperation]]](_no_permission)
        committed.listeners.append(self._on_commit)

    def is_stored(self, login: Login) -> bool:
        """Return whether a user's password is the one that was committed last."""
        return self._salts[login.user].latest == Stored.of(login.password).salt

    def is_right(self, login: Login, offset: int) -> bool:
        """Return whether a login is right for a broker that has applied all up to an offset."""
        return self._salts[login.user].at(offset) == Stored.of(login.password).salt

    def has_password(self, user: str) -> bool:
        """Return whether a user has a password."""
        return self._salts[user].latest is not None

    def permissions(self, user: str) -> frozenset[AclOperation]:
        """Return what a user may do by what was committed last."""
        return self._permissions[user].latest

    def may(self, user: str, operation: AclOperation, offset: int) -> bool:
        """Return whether a user may do something for a broker that has applied up to an offset."""
        return operation in self._permissions[user].at(offset)

    def _on_commit(self, message: Message) -> None:
        offset = self._committed.image.last_offset
        match message:
            case UserScramCredentialRecord():
                self._salts[message.name].add(offset, message.salt)
            case RemoveUserScramCredentialRecord():
                self._salts[message.name].add(offset, None)
            case AccessControlEntryRecord():
                user = Principal.from_text(message.principal)
                operation = AclOperation(message.operation)
                self._entries[message.id] = user.name, operation
                self._permit(user.name, offset, lambda before: before | {operation})
            case RemoveAccessControlEntryRecord():
                name, operation = self._entries.pop(message.id)
                self._permit(name, offset, lambda before: before - {operation})
            case _:
                pass

    def _permit(
        self,
        user: str,
        offset: int,
        change: Callable[[frozenset[AclOperation]], frozenset[AclOperation]],
    ) -> None:
        permissions = self._permissions[user]
        permissions.add(offset, change(permissions.latest))


def principal_of(user: str) -> Principal:
    """Return the principal of a user."""
    return Principal(USER_TYPE, user)


def _no_salt() -> _Timeline[bytes | None]:
    return _Timeline(None)


def _no_permission() -> _Timeline[frozenset[AclOperation]]:
    return _Timeline(frozenset())
