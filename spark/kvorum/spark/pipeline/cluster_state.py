"""The state that a run leaves for the next one of a cluster, besides its saved history."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from kvorum.spark.pipeline.errors import DamagedOutputError
from kvorum.spark.pipeline.log_tail import Tail, TailPlace

FORMAT: Final = 1
"""Another number stands for another meaning of what is stored."""


@dataclass(frozen=True, slots=True)
class ClusterState:
    """The end of a cluster's log in the tables, and the files that the next run replaces.

    `fingerprint` is that of the input's files then. `history` is the file of the saved history,
    None without one. `replaced` are the files with open rows and with the state. All paths
    are relative to the output.
    """

    tail: Tail | None
    tail_place: TailPlace | None
    next_offset: int
    fingerprint: list[list[str | int]]
    history: str | None
    replaced: list[str]
    with_json: bool

    def to_bytes(self) -> bytes:
        """Return the state as it is stored."""
        return json.dumps({"format": FORMAT, **asdict(self)}, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, path: str, data: bytes) -> ClusterState:
        """Return the state that `to_bytes` made; `DamagedOutputError` names `path`."""
        try:
            document: dict[str, Any] = json.loads(data)
            if document.pop("format") != FORMAT:
                raise ValueError("written by another release")
            tail, place = document.pop("tail"), document.pop("tail_place")
            return cls(
                tail=None if tail is None else Tail(*tail),
                tail_place=None if place is None else TailPlace(*place),
                **document,
            )
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedOutputError(
                f"{path}: not what a run of this release left ({error}): use --rebuild"
            ) from error
