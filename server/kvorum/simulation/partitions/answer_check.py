"""The check of the answer to one request."""

from collections.abc import Callable
from typing import TypeAlias

from kvorum.wire.primitives import Message

Check: TypeAlias = Callable[[Message], None]
"""Looks at the answer; raises PropertyViolatedError."""
