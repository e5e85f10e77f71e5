"""Scripts: requests as data, the same for both controllers; shown as JSON lines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from kvorum.wire.apis import API_SPECS

# The edge of JSON: bodies of requests, nested as the schema nests them.
Body: TypeAlias = Mapping[str, Any]
API_KEYS: Mapping[str, int] = {spec.name: spec.key for spec in API_SPECS.values()}


@dataclass(frozen=True, slots=True)
class Step:
    """One request, the same for both sides.

    `body` has Kafka's JSON field names. What it leaves out is at its default, and what `version`
    cannot carry is left out of the request, so that one body serves all versions. Strings that
    begin with "$" are looked up on each side (see `view`). With `is_placed` the controller
    chooses replicas by chance: of those only what is determined is compared. `awaited` is how many
    records have to come before they are compared, where the controller goes on unasked.
    """

    api: str
    version: int
    body: Body
    is_placed: bool = False
    awaited: int = 0

    @property
    def key(self) -> int:
        """The number of the API."""
        return API_KEYS[self.api]

    def as_json(self) -> str:
        """The step as one line."""
        row: dict[str, Any] = {"api": self.api, "version": self.version, "body": self.body}
        row |= {"placed": True} if self.is_placed else {}
        return json.dumps(row | ({"awaited": self.awaited} if self.awaited else {}))


@dataclass(frozen=True, slots=True)
class Silence:
    """A time in which some brokers say nothing, until the controller fences each of them.

    Each must have sent a heartbeat since it was registered or unregistered.
    Meanwhile the brokers of `alive` send heartbeats.
    """

    silent: tuple[int, ...]
    alive: tuple[int, ...] = ()

    def as_json(self) -> str:
        """The step as one line."""
        return json.dumps({"silent": self.silent, "alive": self.alive})


AnyStep: TypeAlias = Step | Silence


@dataclass(frozen=True, slots=True)
class Script:
    """Steps in their order, and what they were made from."""

    kind: str
    seed: int
    steps: tuple[AnyStep, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the script in reports: its kind and seed."""
        return f"{self.kind}-{self.seed}"

    def as_lines(self) -> str:
        """The script as JSON lines."""
        return "".join(f"{step.as_json()}\n" for step in self.steps)
