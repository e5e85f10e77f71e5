"""``cluster-id``, ``unregister`` and ``list-endpoints``: what kafka-cluster prints."""

from __future__ import annotations

from collections.abc import Sequence

from kvorum.cli.admin.client import AdminClient
from kvorum.cli.admin.cluster_calls import NodeEndpoint, describe_cluster, unregister_call
from kvorum.cli.admin.command import print_logged_error
from kvorum.cli.admin.error_classes import ERRORS_PACKAGE
from kvorum.cli.admin.errors import AdminError, CallFailedError
from kvorum.cli.admin.settings import AdminSettings

_NOT_SUPPORTED = f"{ERRORS_PACKAGE}.UnsupportedVersionException"
_HOST_WIDTH_OF_NONE = 100
_RACK_WIDTH_OF_NONE = 10


async def print_cluster_id(client: AdminClient, *, asks_controllers: bool) -> None:
    """Print the id of the cluster."""
    cluster = await describe_cluster(client, asks_controllers=asks_controllers)
    if cluster.cluster_id is None:
        print("No cluster ID found. The Kafka version is probably too old.")
    else:
        print(f"Cluster ID: {cluster.cluster_id}")


async def unregister(client: AdminClient, settings: AdminSettings, *, broker_id: int) -> None:
    """Remove a broker's registration, and print the result."""

    def log_refusal(message: str | None) -> None:
        print_logged_error(
            f"[AdminClient clientId={settings.client_id}] Unregister broker request for broker ID "
            f"{broker_id} failed: {'null' if message is None else message}"
        )

    try:
        await client.call(unregister_call(broker_id, log_refusal=log_refusal))
    except CallFailedError as error:
        if error.failure.class_name != _NOT_SUPPORTED:
            raise
        print("The target cluster does not support the broker unregistration API.")
    else:
        print(f"Broker {broker_id} is no longer registered.")


async def print_endpoints(
    client: AdminClient, *, asks_controllers: bool, includes_fenced: bool
) -> None:
    """Print a table of the brokers, or of the controllers if they are asked."""
    if asks_controllers and includes_fenced:
        raise AdminError(
            "The option --include-fenced-brokers is only supported with --bootstrap-server option"
        )
    try:
        cluster = await describe_cluster(
            client, asks_controllers=asks_controllers, includes_fenced=includes_fenced
        )
    except CallFailedError as error:
        if error.failure.class_name != _NOT_SUPPORTED:
            raise
        print(error.failure.text)
        return
    _print_table(cluster.endpoints, are_controllers=asks_controllers)


def _print_table(endpoints: Sequence[NodeEndpoint], *, are_controllers: bool) -> None:
    host_width = max((len(one.host) for one in endpoints), default=_HOST_WIDTH_OF_NONE)
    racks = (one.rack for one in endpoints if one.rack is not None)
    rack_width = max(map(len, racks), default=_RACK_WIDTH_OF_NONE)
    widths = [10, host_width, 10, rack_width, *(() if are_controllers else (10,)), 15]
    states = () if are_controllers else ("STATE",)
    rows = [["ID", "HOST", "PORT", "RACK", *states, "ENDPOINT_TYPE"]]
    for one in endpoints:
        state = "fenced" if one.is_fenced else "unfenced"
        rack = "null" if one.rack is None else one.rack
        kind = ["controller"] if are_controllers else [state, "broker"]
        rows.append([str(one.node_id), one.host, str(one.port), rack, *kind])
    for row in rows:
        print(" ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True)))
