"""The protocols that a member of the classic protocol can take part in."""

from dataclasses import dataclass

from kvorum.wire.messages.join_group import JoinGroupRequest


@dataclass(frozen=True, slots=True)
class SupportedProtocol:
    """A protocol that a member can take part in, with bytes that only members understand."""

    name: str
    metadata: bytes


def supported_protocols(request: JoinGroupRequest) -> tuple[SupportedProtocol, ...]:
    """Return the protocols that a member brings, in its order of preference."""
    return tuple(SupportedProtocol(one.name, bytes(one.metadata)) for one in request.protocols)
