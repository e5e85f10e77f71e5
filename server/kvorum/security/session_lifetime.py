"""The time that a session by SASL lasts, as Kafka tells it to clients (KIP-368)."""

from typing import Final

from kvorum.security.sasl_server import SaslBrokenError

SESSION_MS_MAX: Final = 9_223_372_036_854
"""The longest session whose nanoseconds Kafka can count."""


def session_lifetime_ms(
    *, session_ms_max: int, expires_at_ms: int | None, now_ms: int
) -> int | None:
    """Return the time that a session lasts, None without an end.

    A credential that has expired makes a session that is over. Raises SaslBrokenError for a time
    that Kafka cannot count.
    """
    limits: list[int] = []
    if session_ms_max > 0:
        limits.append(session_ms_max)
    if expires_at_ms is not None:
        limits.append(expires_at_ms - now_ms)
    if not limits:
        return None
    lifetime_ms = max(0, min(limits))
    if lifetime_ms > SESSION_MS_MAX:
        raise SaslBrokenError(f"a session of {lifetime_ms} ms cannot be counted")
    return lifetime_ms
