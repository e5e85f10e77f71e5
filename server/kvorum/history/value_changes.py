"""Changes of values: configurations, access control entries, quotas, credentials and features.

A subject names one value, or the values of one resource. Its rows are the differences between two
states of the image, so a record that changes nothing gives no row, and a value that a metadata
transaction changes twice gives one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

from kvorum.history.intervals import Position
from kvorum.history.tables import (
    AclChangeRow,
    Action,
    ConfigChangeRow,
    DelegationTokenChangeRow,
    FeatureChangeRow,
    ProducerIdsRow,
    QuotaChangeRow,
    ScramChangeRow,
)
from kvorum.history.value_columns import acl_row, entity_columns, is_sensitive
from kvorum.metadata.acls_image import AclsImage
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.configs_image import (
    ClientQuotasImage,
    ConfigResource,
    ConfigsImage,
    QuotaEntity,
    ResourceType,
)
from kvorum.metadata.credentials_image import DelegationTokensImage, ScramImage, ScramMechanism
from kvorum.metadata.features import FeaturesImage
from kvorum.metadata.replay import ImageEditor, ImageParts
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.primitives import Message

ValueChangeRow: TypeAlias = (
    ConfigChangeRow
    | AclChangeRow
    | QuotaChangeRow
    | ScramChangeRow
    | FeatureChangeRow
    | DelegationTokenChangeRow
    | ProducerIdsRow
)
Value = TypeVar("Value")


class Parts(NamedTuple):
    """The parts of an image except its topics, at one moment: immutable values."""

    features: FeaturesImage
    cluster: ClusterImage
    configs: ConfigsImage
    client_quotas: ClientQuotasImage
    next_producer_id: int
    acls: AclsImage
    scram: ScramImage
    delegation_tokens: DelegationTokensImage


def parts_of(source: ImageEditor | ImageParts) -> Parts:
    """Return the parts that `source` has at this moment."""
    return Parts(
        source.features,
        source.cluster,
        source.configs,
        source.client_quotas,
        source.next_producer_id,
        source.acls,
        source.scram,
        source.delegation_tokens,
    )


class Subject(Protocol):
    """A value, or the values of one resource, that a record changes."""

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[ValueChangeRow]:
        """Yield the differences between two states of the image."""
        ...


def _differences(
    before: Mapping[str, Value], after: Mapping[str, Value]
) -> Iterator[tuple[str, Value | None, Value | None]]:
    """Yield each key whose value differs, in order, with the values before and after."""
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is not new and old != new:
            yield key, old, new


def _action(old: object | None, new: object | None) -> Action:
    """Return the kind of a change, by the values before and after."""
    if old is None:
        return Action.ADDED
    return Action.REMOVED if new is None else Action.CHANGED


@dataclass(frozen=True, slots=True)
class ConfigSubject:
    """The dynamic values of a resource."""

    resource: ConfigResource
    is_topic_deleted: bool = field(default=False, compare=False)

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[ConfigChangeRow]:
        """Yield a row for each key whose value differs."""
        kind, name = self.resource
        differences = _differences(before.configs.of(kind, name), after.configs.of(kind, name))
        for key, old, new in differences:
            yield ConfigChangeRow(
                *position.columns,
                _action(old, new),
                resource_type=ResourceType(kind).name,
                resource_name=name,
                name=key,
                old_value=old,
                new_value=new,
                is_sensitive=is_sensitive(kind, key),
                is_topic_deleted=self.is_topic_deleted,
            )


@dataclass(frozen=True, slots=True)
class AclSubject:
    """The access control entry of an id."""

    id: bytes

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[AclChangeRow]:
        """Yield a row for the entry that is removed, and one for the entry that is added."""
        old, new = before.acls.entries.get(self.id), after.acls.entries.get(self.id)
        if old == new:
            return
        for action, entry in ((Action.REMOVED, old), (Action.ADDED, new)):
            if entry is not None:
                yield AclChangeRow(*position.columns, action, *acl_row(self.id, entry))


@dataclass(frozen=True, slots=True)
class QuotaSubject:
    """The quotas of an entity."""

    entity: QuotaEntity

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[QuotaChangeRow]:
        """Yield a row for each key whose value differs."""
        none: Mapping[str, float] = {}
        for key, old, new in _differences(
            before.client_quotas.entities.get(self.entity, none),
            after.client_quotas.entities.get(self.entity, none),
        ):
            yield QuotaChangeRow(
                *position.columns,
                _action(old, new),
                entity=entity_columns(self.entity),
                key=key,
                old_value=old,
                new_value=new,
            )


@dataclass(frozen=True, slots=True)
class ScramSubject:
    """The SCRAM credential of a user for one mechanism."""

    mechanism: int
    user: str

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[ScramChangeRow]:
        """Yield a row if the credential differs."""
        key = (self.mechanism, self.user)
        old, new = before.scram.credentials.get(key), after.scram.credentials.get(key)
        credential = new or old
        if credential is not None and old != new:
            yield ScramChangeRow(
                *position.columns,
                _action(old, new),
                user=self.user,
                mechanism=_mechanism_name(self.mechanism),
                iterations=credential.iterations,
            )


def _mechanism_name(mechanism: int) -> str:
    """Return the name that Kafka's tools use: SCRAM-SHA-256."""
    known = mechanism in ScramMechanism.__members__.values()
    return (ScramMechanism(mechanism) if known else ScramMechanism.UNKNOWN).mechanism_name


@dataclass(frozen=True, slots=True)
class FeatureSubject:
    """The finalized level of a feature."""

    name: str

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[FeatureChangeRow]:
        """Yield a row if the level differs."""
        old, new = before.features.level(self.name), after.features.level(self.name)
        if old != new:
            yield FeatureChangeRow(
                *position.columns, feature=self.name, old_level=old, new_level=new
            )


@dataclass(frozen=True, slots=True)
class DelegationTokenSubject:
    """The delegation token of an id."""

    id: str

    def rows(
        self, before: Parts, after: Parts, position: Position
    ) -> Iterator[DelegationTokenChangeRow]:
        """Yield a row if the token differs."""
        old = before.delegation_tokens.tokens.get(self.id)
        new = after.delegation_tokens.tokens.get(self.id)
        token = new or old
        if token is not None and old != new:
            yield DelegationTokenChangeRow(
                *position.columns,
                _action(old, new),
                token_id=self.id,
                owner=token.owner,
                requester=token.requester,
                renewers=token.renewers,
                issue_time=token.issue_timestamp_ms,
                max_time=token.max_timestamp_ms,
                expiration_time=token.expiration_timestamp_ms,
            )


@dataclass(frozen=True, slots=True)
class ProducerIdsSubject:
    """The block of producer ids that a broker is given."""

    broker_id: int
    broker_epoch: int

    def rows(self, before: Parts, after: Parts, position: Position) -> Iterator[ProducerIdsRow]:
        """Yield a row if the next producer id differs."""
        old, new = before.next_producer_id, after.next_producer_id
        if old != new:
            yield ProducerIdsRow(
                *position.columns,
                broker_id=self.broker_id,
                broker_epoch=self.broker_epoch,
                first_producer_id=None if old < 0 else old,
                next_producer_id=new,
            )


def subject_of(message: Message) -> Subject | None:
    """Return the subject of a record, None for a record of topics, partitions or nodes."""
    match message:
        case ConfigRecord():
            return ConfigSubject((message.resource_type, message.resource_name))
        case AccessControlEntryRecord() | RemoveAccessControlEntryRecord():
            return AclSubject(message.id)
        case ClientQuotaRecord():
            parts = {part.entity_type: part.entity_name for part in message.entity}
            return QuotaSubject(tuple(sorted(parts.items())))
        case UserScramCredentialRecord() | RemoveUserScramCredentialRecord():
            return ScramSubject(message.mechanism, message.name)
        case FeatureLevelRecord():
            return FeatureSubject(message.name)
        case DelegationTokenRecord() | RemoveDelegationTokenRecord():
            return DelegationTokenSubject(message.token_id)
        case ProducerIdsRecord():
            return ProducerIdsSubject(message.broker_id, message.broker_epoch)
        case _:
            return None
