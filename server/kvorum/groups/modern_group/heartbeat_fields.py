"""The check of texts in heartbeats that is the same for both protocols."""

from kvorum.metadata.api import invalid_request
from kvorum.wire.java_text import java_trim


def demand_text(text: str | None, name: str) -> None:
    """Refuse a text of spaces, or an empty one, with INVALID_REQUEST; None is left out."""
    if text is not None and not java_trim(text):
        raise invalid_request(f"{name} can't be empty.")
