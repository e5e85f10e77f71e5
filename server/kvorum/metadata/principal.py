"""Principals: the users behind requests, as Kafka names them."""

from __future__ import annotations

from typing import Final, NamedTuple

USER_TYPE: Final = "User"


class Principal(NamedTuple):
    """A user by type and name.

    `is_token_authenticated` reports how the user was authenticated; it does not change the
    identity.
    """

    type: str = USER_TYPE
    name: str = "ANONYMOUS"
    is_token_authenticated: bool = False

    @property
    def text(self) -> str:
        """The principal as access rules and records name it: ``type:name``."""
        return f"{self.type}:{self.name}"

    def is_same_user(self, other: Principal) -> bool:
        """Return whether both are the same user, however each was authenticated."""
        return (self.type, self.name) == (other.type, other.name)

    @classmethod
    def from_text(cls, text: str) -> Principal:
        """Return the principal that ``type:name`` names; `ValueError` without a colon."""
        kind, colon, name = text.partition(":")
        if not colon:
            raise ValueError(
                f"expected a string in format principalType:principalName but got {text}"
            )
        return cls(kind, name)


ANONYMOUS: Final = Principal()
"""The principal of every client on a PLAINTEXT listener."""
