"""`dataclass` as everywhere, only quicker to make: what a start costs is mostly its classes.

Type checkers see the standard decorator; at run time `kvorum.wire.lazy_dataclass` takes its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from kvorum.wire.lazy_dataclass import lazy_dataclass as dataclass

__all__ = ["dataclass"]
