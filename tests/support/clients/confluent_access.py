"""confluent-kafka's AdminClient as somebody who may do some things and not others."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from tests.support.clients.driver import CLIENT_TIMEOUT_S
from tests.support.waiting import wait_for

TOPIC: Final = "by-client"
NEW_TOPIC: Final = "by-client-later"
PRINCIPAL: Final = "User:client"


def ask_about_access(bootstrap_servers: str) -> list[str]:
    """Create entries that close topics to this client, try these, and remove the entries.

    The result is what the client was told, request by request.
    """
    admin: Any = importlib.import_module("confluent_kafka.admin")
    client: Any = admin.AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
    config = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, TOPIC)
    told = _told(client.create_topics([admin.NewTopic(TOPIC, 1, 1)]))
    closing = _entries(admin)
    told += _told(client.create_acls(closing))
    told += _wait_for_entries(client, _any_filter(admin), len(closing))
    told += _told(client.delete_topics([TOPIC, "by-client-nowhere"]))
    told += _told(client.create_partitions([admin.NewPartitions(TOPIC, 2)]))
    told += _told(client.create_topics([admin.NewTopic(NEW_TOPIC, 1, 1)]))
    told += _told(client.describe_configs([config]))
    told += _told(client.delete_acls([_any_filter(admin)]))
    return told


def _entries(admin: Any) -> list[Any]:
    kinds, patterns = admin.ResourceType, admin.ResourcePatternType
    named: Sequence[tuple[Any, str, Any]] = (
        (kinds.TOPIC, TOPIC, patterns.LITERAL),
        (kinds.TOPIC, NEW_TOPIC, patterns.PREFIXED),
        (kinds.GROUP, "by-client", patterns.LITERAL),
    )
    read, allow = admin.AclOperation.READ, admin.AclPermissionType.ALLOW
    return [
        admin.AclBinding(kind, name, pattern, PRINCIPAL, "*", read, allow)
        for kind, name, pattern in named
    ]


def _any_filter(admin: Any) -> Any:
    return admin.AclBindingFilter(
        admin.ResourceType.ANY,
        None,
        admin.ResourcePatternType.ANY,
        PRINCIPAL,
        None,
        admin.AclOperation.ANY,
        admin.AclPermissionType.ANY,
    )


def _wait_for_entries(client: Any, wanted: Any, count: int) -> list[str]:
    """Return the entries, once the broker knows of as many."""

    def entries() -> list[str]:
        return sorted(map(str, client.describe_acls(wanted).result(CLIENT_TIMEOUT_S)))

    def look() -> list[str] | None:
        found = entries()
        return found if len(found) == count else None

    return wait_for(look, f"the broker knows of {count} entries", otherwise=entries)


def _told(futures: Mapping[Any, Any]) -> list[str]:
    return [f"{key}: {_outcome(future)}" for key, future in futures.items()]


def _outcome(future: Any) -> str:
    errors: Any = importlib.import_module("confluent_kafka").KafkaException
    try:
        answer = future.result(CLIENT_TIMEOUT_S)
    except errors as error:
        return f"{error.args[0].code()} {error.args[0].str()}"
    # Removing tells of the entries in no certain order.
    entries = cast("list[object]", answer) if isinstance(answer, list) else [answer]
    return "; ".join(sorted(str(entry) for entry in entries))
