"""File contents of the metadata shell: values in the text form of Kafka's own classes."""

from collections.abc import Iterable, Mapping
from typing import Final

from kvorum.inspection.shell.node import in_java_order
from kvorum.inspection.times import utc_text
from kvorum.metadata.acl_codes import AclOperation, AclResourceType, PatternType, PermissionType
from kvorum.metadata.acls_image import AccessControlEntry
from kvorum.metadata.cluster_image import BrokerRegistration, ControllerRegistration, Endpoint
from kvorum.metadata.delegation_tokens_image import DelegationToken
from kvorum.metadata.features import VersionRange
from kvorum.metadata.partition import RECOVERED, PartitionRegistration
from kvorum.metadata.scram_image import ScramCredential
from kvorum.wire.uuid_text import uuid_to_text

_NO_UPPER_BOUND: Final = 0x7FFF
_SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def optional_text(value: object) -> str:
    """Return the text of a value that may be missing, as Java's Optional prints it."""
    return "Optional.empty" if value is None else f"Optional[{value}]"


def time_text(timestamp_ms: int) -> str:
    """Return a time as Java prints one of the zone UTC."""
    return f"{utc_text(timestamp_ms)}[UTC]"


def broker_text(broker: BrokerRegistration) -> str:
    """Return the text of a registered broker."""
    cordoned = broker.cordoned_directories
    return (
        f"BrokerRegistration(id={broker.id}, epoch={broker.epoch}, "
        f"incarnationId={uuid_to_text(broker.incarnation_id)}, "
        f"listeners={_listeners(broker.listeners)}, "
        f"supportedFeatures={_supported(broker.supported_features)}, "
        f"rack={optional_text(broker.rack)}, fenced={_truth(broker.is_fenced)}, "
        f"inControlledShutdown={_truth(broker.is_in_controlled_shutdown)}, "
        f"isMigratingZkBroker={_truth(broker.is_migrating_zk_broker)}, "
        f"directories={_ids(broker.directories)}, "
        f"cordonedDirectories={'null' if cordoned is None else _ids(cordoned)})"
    )


def controller_text(controller: ControllerRegistration) -> str:
    """Return the text of a registered controller."""
    return (
        f"ControllerRegistration(id={controller.id}, "
        f"incarnationId={uuid_to_text(controller.incarnation_id)}, "
        f"zkMigrationReady={_truth(controller.is_zk_migration_ready)}, "
        f"listeners={_listeners(controller.listeners)}, "
        f"supportedFeatures={_supported(controller.supported_features)})"
    )


def partition_text(partition: PartitionRegistration) -> str:
    """Return the text of a partition."""
    recovery = "RECOVERED" if partition.leader_recovery_state == RECOVERED else "RECOVERING"
    return (
        f"PartitionRegistration(replicas={list(partition.replicas)}, "
        f"directories={_ids(partition.directories)}, isr={list(partition.isr)}, "
        f"removingReplicas={list(partition.removing_replicas)}, "
        f"addingReplicas={list(partition.adding_replicas)}, elr={list(partition.elr)}, "
        f"lastKnownElr={list(partition.last_known_elr)}, leader={partition.leader}, "
        f"leaderRecoveryState={recovery}, leaderEpoch={partition.leader_epoch}, "
        f"partitionEpoch={partition.partition_epoch})"
    )


def acl_text(entry: AccessControlEntry) -> str:
    """Return the text of an access control entry."""
    return (
        f"StandardAcl[resourceType={AclResourceType(entry.resource_type).name}, "
        f"resourceName={entry.resource_name}, "
        f"patternType={PatternType(entry.pattern_type).name}, principal={entry.principal}, "
        f"host={entry.host}, operation={AclOperation(entry.operation).name}, "
        f"permissionType={PermissionType(entry.permission_type).name}]"
    )


def scram_text(credential: ScramCredential) -> str:
    """Return the text of a credential, with its keys in full."""
    return (
        f"ScramCredentialData(salt={credential.salt.hex()}, "
        f"storedKey={credential.stored_key.hex()}, serverKey={credential.server_key.hex()}, "
        f"iterations={credential.iterations})"
    )


def token_text(token_id: str, token: DelegationToken) -> str:
    """Return the text of a delegation token; Kafka's brackets do not match either."""
    return (
        f"DelegationTokenDatatokenId={token_id}(owner={token.owner}"
        f"(tokenRequester={token.requester}(renewers={' '.join(token.renewers)}, "
        f"issueTimestamp={token.issue_timestamp_ms}, maxTimestamp={token.max_timestamp_ms}), "
        f"expiryTimestamp={token.expiration_timestamp_ms}"
    )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _ids(ids: Iterable[bytes]) -> str:
    return f"[{', '.join(map(uuid_to_text, ids))}]"


def _listeners(listeners: Iterable[Endpoint]) -> str:
    ordered = sorted(listeners, key=lambda endpoint: in_java_order(endpoint.listener))
    return f"[{', '.join(map(_endpoint, ordered))}]"


def _endpoint(endpoint: Endpoint) -> str:
    known = 0 <= endpoint.security_protocol < len(_SECURITY_PROTOCOLS)
    protocol = _SECURITY_PROTOCOLS[endpoint.security_protocol] if known else "null"
    return (
        f"Endpoint(listenerName='{endpoint.listener}', securityProtocol={protocol}, "
        f"host='{endpoint.host}', port={endpoint.port})"
    )


def _supported(features: Mapping[str, VersionRange]) -> str:
    names = sorted(features, key=in_java_order)
    return f"{{{', '.join(f'{name}: {_range(features[name])}' for name in names)}}}"


def _range(levels: VersionRange) -> str:
    if levels.max == _NO_UPPER_BOUND and levels.min != levels.max:
        return f"{levels.min}+"
    return str(levels)
