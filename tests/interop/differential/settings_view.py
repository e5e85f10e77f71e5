"""The configurations, quotas, credentials and features in a side's log, to take them back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.interop.differential.metadata_log import LogRecord

Entity = tuple[tuple[str, str | None], ...]


@dataclass
class SettingsView:
    """Everything that is set, by what it is set for."""

    configs: dict[tuple[int, str], set[str]] = field(
        default_factory=dict[tuple[int, str], set[str]]
    )
    quotas: dict[Entity, set[str]] = field(default_factory=dict[Entity, set[str]])
    credentials: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    first_features: dict[str, int] = field(default_factory=dict[str, int])
    features: dict[str, int] = field(default_factory=dict[str, int])
    controllers: set[int] = field(default_factory=set[int])
    is_begun: bool = False

    def begin(self) -> None:
        """Take the features of now for those to go back to."""
        if not self.is_begun:
            self.is_begun = True
            self.first_features = dict(self.features)

    def fold(self, record: LogRecord) -> None:
        """Take a record in."""
        data: Mapping[str, Any] = record.data
        match record.type:
            case "ConfigRecord":
                keys = self.configs.setdefault((data["resourceType"], data["resourceName"]), set())
                (keys.discard if data["value"] is None else keys.add)(data["name"])
            case "ClientQuotaRecord":
                entity = tuple((part["entityType"], part["entityName"]) for part in data["entity"])
                keys = self.quotas.setdefault(tuple(sorted(entity)), set())
                (keys.discard if data["remove"] else keys.add)(data["key"])
            case "UserScramCredentialRecord":
                self.credentials.add((data["name"], data["mechanism"]))
            case "RemoveUserScramCredentialRecord":
                self.credentials.discard((data["name"], data["mechanism"]))
            case "RegisterControllerRecord":
                self.controllers.add(data["controllerId"])
            case "FeatureLevelRecord":
                self.features[data["name"]] = data["featureLevel"]
            case _:
                pass
