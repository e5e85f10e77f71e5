"""The parts of a metadata image, and the replay of records into it: a function per record type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias, TypeVar

from kvorum.metadata import acls_image, cluster_image, configs_image, credentials_image, features
from kvorum.metadata.acls_image import AclsImage
from kvorum.metadata.cluster_image import ClusterImage
from kvorum.metadata.configs_image import ClientQuotasImage, ConfigsImage, ResourceType
from kvorum.metadata.credentials_image import DelegationTokensImage, ScramImage
from kvorum.metadata.errors import ReplayError
from kvorum.metadata.features import FeaturesImage
from kvorum.metadata.topics_image import TopicsEditor, TopicsImage
from kvorum.wire.messages.abort_transaction_record import AbortTransactionRecord
from kvorum.wire.messages.access_control_entry_record import AccessControlEntryRecord
from kvorum.wire.messages.begin_transaction_record import BeginTransactionRecord
from kvorum.wire.messages.broker_registration_change_record import BrokerRegistrationChangeRecord
from kvorum.wire.messages.clear_elr_record import ClearElrRecord
from kvorum.wire.messages.client_quota_record import ClientQuotaRecord
from kvorum.wire.messages.config_record import ConfigRecord
from kvorum.wire.messages.delegation_token_record import DelegationTokenRecord
from kvorum.wire.messages.end_transaction_record import EndTransactionRecord
from kvorum.wire.messages.feature_level_record import FeatureLevelRecord
from kvorum.wire.messages.fence_broker_record import FenceBrokerRecord
from kvorum.wire.messages.no_op_record import NoOpRecord
from kvorum.wire.messages.partition_change_record import PartitionChangeRecord
from kvorum.wire.messages.partition_record import PartitionRecord
from kvorum.wire.messages.producer_ids_record import ProducerIdsRecord
from kvorum.wire.messages.register_broker_record import RegisterBrokerRecord
from kvorum.wire.messages.register_controller_record import RegisterControllerRecord
from kvorum.wire.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from kvorum.wire.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kvorum.wire.messages.remove_topic_record import RemoveTopicRecord
from kvorum.wire.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kvorum.wire.messages.topic_record import TopicRecord
from kvorum.wire.messages.unfence_broker_record import UnfenceBrokerRecord
from kvorum.wire.messages.unregister_broker_record import UnregisterBrokerRecord
from kvorum.wire.messages.unregister_controller_record import UnregisterControllerRecord
from kvorum.wire.messages.user_scram_credential_record import UserScramCredentialRecord
from kvorum.wire.messages.zk_migration_state_record import ZkMigrationStateRecord
from kvorum.wire.primitives import Message

Record = TypeVar("Record", bound=Message)


@dataclass(frozen=True, slots=True)
class ImageParts:
    """The state of the cluster after the record at `last_offset`, part by part.

    Inside a metadata transaction the parts hold its records too.
    """

    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    client_quotas: ClientQuotasImage = field(default_factory=ClientQuotasImage)
    next_producer_id: int = -1
    acls: AclsImage = field(default_factory=AclsImage)
    scram: ScramImage = field(default_factory=ScramImage)
    delegation_tokens: DelegationTokensImage = field(default_factory=DelegationTokensImage)
    transaction: OpenTransaction | None = None
    last_offset: int = -1


class OpenTransaction(NamedTuple):
    """A run of records that counts as a whole or not at all (KIP-868).

    `before` is the image as it was before the record at `begin_offset`.
    """

    name: str | None
    begin_offset: int
    before: ImageParts


class ImageEditor:
    """The parts of an image while a run of records is folded into them."""

    def __init__(self, base: ImageParts) -> None:
        self.transaction = base.transaction
        self.last_offset = base.last_offset
        self.rebase(base)

    def rebase(self, base: ImageParts) -> None:
        """Start from the parts of `base`, and discard all changes since."""
        self._base = base
        self.features = base.features
        self.cluster = base.cluster
        self.topics = TopicsEditor(base.topics)
        self.configs = base.configs
        self.client_quotas = base.client_quotas
        self.next_producer_id = base.next_producer_id
        self.acls = base.acls
        self.scram = base.scram
        self.delegation_tokens = base.delegation_tokens

    def finish(self) -> ImageParts:
        """Return the parts with everything folded in, of the class of the base.

        Only `rebase` may follow.
        """
        return replace(
            self._base,
            features=self.features,
            cluster=self.cluster,
            topics=self.topics.finish(),
            configs=self.configs,
            client_quotas=self.client_quotas,
            next_producer_id=self.next_producer_id,
            acls=self.acls,
            scram=self.scram,
            delegation_tokens=self.delegation_tokens,
            transaction=self.transaction,
            last_offset=self.last_offset,
        )


Fold: TypeAlias = Callable[[ImageEditor, Message, int], None]


def fold_record(editor: ImageEditor, message: Message, offset: int) -> None:
    """Fold one record, which is at `offset`, into `editor`."""
    key = message.API_KEY
    fold = FOLDS.get(-1 if key is None else key)
    if fold is None:
        raise ReplayError(f"{message.NAME} is not a record of the metadata log")
    fold(editor, message, offset)
    editor.last_offset = offset


def _register_broker(editor: ImageEditor, record: RegisterBrokerRecord, offset: int) -> None:
    editor.cluster = cluster_image.replay_register_broker(editor.cluster, record, offset)


def _config(editor: ImageEditor, record: ConfigRecord, _: int) -> None:
    editor.configs = configs_image.replay_config(editor.configs, record)


def _remove_topic(editor: ImageEditor, record: RemoveTopicRecord, _: int) -> None:
    name = editor.topics.remove_topic(record.topic_id)
    editor.configs = editor.configs.without(ResourceType.TOPIC, name)


def _delegation_token(editor: ImageEditor, record: DelegationTokenRecord, _: int) -> None:
    editor.delegation_tokens = credentials_image.replay_delegation_token(
        editor.delegation_tokens, record
    )


def _user_scram_credential(editor: ImageEditor, record: UserScramCredentialRecord, _: int) -> None:
    editor.scram = credentials_image.replay_user_scram_credential(editor.scram, record)


def _feature_level(editor: ImageEditor, record: FeatureLevelRecord, _: int) -> None:
    editor.features = features.replay_feature_level(editor.features, record)


def _client_quota(editor: ImageEditor, record: ClientQuotaRecord, _: int) -> None:
    editor.client_quotas = configs_image.replay_client_quota(editor.client_quotas, record)


def _producer_ids(editor: ImageEditor, record: ProducerIdsRecord, _: int) -> None:
    editor.next_producer_id = record.next_producer_id


def _access_control_entry(editor: ImageEditor, record: AccessControlEntryRecord, _: int) -> None:
    editor.acls = acls_image.replay_access_control_entry(editor.acls, record)


def _remove_access_control_entry(
    editor: ImageEditor, record: RemoveAccessControlEntryRecord, _: int
) -> None:
    editor.acls = acls_image.replay_remove_access_control_entry(editor.acls, record.id)


def _nothing(editor: ImageEditor, record: Message, offset: int) -> None:
    """Change nothing: the record only takes up an offset."""


def _remove_user_scram_credential(
    editor: ImageEditor, record: RemoveUserScramCredentialRecord, _: int
) -> None:
    editor.scram = credentials_image.replay_remove_user_scram_credential(editor.scram, record)


def _begin_transaction(editor: ImageEditor, record: BeginTransactionRecord, offset: int) -> None:
    if editor.transaction is not None:
        raise ReplayError(
            f"a transaction begins at offset {offset}, but the one that began at offset "
            f"{editor.transaction.begin_offset} is still open"
        )
    before = editor.finish()
    editor.rebase(before)
    editor.transaction = OpenTransaction(record.name, offset, before)


def _end_transaction(editor: ImageEditor, _: EndTransactionRecord, offset: int) -> None:
    if editor.transaction is None:
        raise ReplayError(f"a transaction ends at offset {offset}, but none is open")
    editor.transaction = None


def _abort_transaction(editor: ImageEditor, _: AbortTransactionRecord, offset: int) -> None:
    if editor.transaction is None:
        raise ReplayError(f"a transaction is aborted at offset {offset}, but none is open")
    editor.rebase(editor.transaction.before)
    editor.transaction = None


def _remove_delegation_token(
    editor: ImageEditor, record: RemoveDelegationTokenRecord, _: int
) -> None:
    editor.delegation_tokens = credentials_image.replay_remove_delegation_token(
        editor.delegation_tokens, record.token_id
    )


def _typed(
    message_class: type[Record], fold: Callable[[ImageEditor, Record, int], None]
) -> tuple[int, Fold]:
    """Return the entry of `FOLDS` that hands messages of `message_class` to `fold`."""
    key = message_class.API_KEY
    if key is None:
        raise TypeError(f"{message_class.NAME} is not a metadata record")

    def checked(editor: ImageEditor, message: Message, offset: int) -> None:
        if not isinstance(message, message_class):
            raise ReplayError(f"{message.NAME} is not a record of the metadata log")
        fold(editor, message, offset)

    return key, checked


def _of_topics(
    message_class: type[Record], fold: Callable[[TopicsEditor, Record], None]
) -> tuple[int, Fold]:
    """Return the entry of a record that changes topics alone."""
    return _typed(message_class, lambda editor, record, _: fold(editor.topics, record))


def _of_cluster(
    message_class: type[Record], replay: Callable[[ClusterImage, Record], ClusterImage]
) -> tuple[int, Fold]:
    """Return the entry of a record that changes the cluster alone."""

    def fold(editor: ImageEditor, record: Record, _: int) -> None:
        editor.cluster = replay(editor.cluster, record)

    return _typed(message_class, fold)


FOLDS: Final[Mapping[int, Fold]] = MappingProxyType(
    dict(
        [
            _typed(RegisterBrokerRecord, _register_broker),
            _of_cluster(UnregisterBrokerRecord, cluster_image.replay_unregister_broker),
            _of_topics(TopicRecord, TopicsEditor.create_topic),
            _of_topics(PartitionRecord, TopicsEditor.create_partition),
            _typed(ConfigRecord, _config),
            _of_topics(PartitionChangeRecord, TopicsEditor.change_partition),
            _of_cluster(FenceBrokerRecord, cluster_image.replay_fence_broker),
            _of_cluster(UnfenceBrokerRecord, cluster_image.replay_unfence_broker),
            _typed(RemoveTopicRecord, _remove_topic),
            _typed(DelegationTokenRecord, _delegation_token),
            _typed(UserScramCredentialRecord, _user_scram_credential),
            _typed(FeatureLevelRecord, _feature_level),
            _typed(ClientQuotaRecord, _client_quota),
            _typed(ProducerIdsRecord, _producer_ids),
            _of_cluster(
                BrokerRegistrationChangeRecord, cluster_image.replay_broker_registration_change
            ),
            _typed(AccessControlEntryRecord, _access_control_entry),
            _typed(RemoveAccessControlEntryRecord, _remove_access_control_entry),
            _typed(NoOpRecord, _nothing),
            _typed(ZkMigrationStateRecord, _nothing),
            _typed(RemoveUserScramCredentialRecord, _remove_user_scram_credential),
            _typed(BeginTransactionRecord, _begin_transaction),
            _typed(EndTransactionRecord, _end_transaction),
            _typed(AbortTransactionRecord, _abort_transaction),
            _typed(RemoveDelegationTokenRecord, _remove_delegation_token),
            _of_cluster(RegisterControllerRecord, cluster_image.replay_register_controller),
            _of_topics(ClearElrRecord, TopicsEditor.clear_elr),
            _of_cluster(UnregisterControllerRecord, cluster_image.replay_unregister_controller),
        ]
    )
)
"""The function that replays each record type, by the type's number."""
