"""Real nodes and ours that log in at each other by tokens of OAUTHBEARER, which end meanwhile."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from tests.interop.secured_cluster import NodeSecurity, SecuredCluster
from tests.support.kafka.java import Java, ToolRunner
from tests.support.node import Kind
from tests.support.oauth_tokens import OAUTH_MODULE
from tests.support.waiting import wait_for

from kvorum.node.embedded.client_security.client_access import User
from kvorum.node.embedded.client_security.token_issuer import AUDIENCE, TokenIssuer

pytestmark = pytest.mark.slow

PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
VOTERS: Final[Mapping[int, Kind]] = {1: "kvorum", 2: "kafka", 3: "kvorum"}
BROKERS: Final[Mapping[int, Kind]] = {11: "kafka", 12: "kvorum"}
SECRET: Final = "secret of nodes"
LIFETIME_S: Final = 6
RENEWED: Final = re.compile(r"Expiring credential re-login sleeping until")
"""A line of a real node, for each token that it has."""
SESSION_ENDED: Final = "the session of its client has ended"


def by_tokens(issuer: TokenIssuer) -> NodeSecurity:
    """Return signed tokens at controllers, and unsecured ones with a short life at brokers."""
    urls = f"{issuer.token_url},{issuer.key_set_file.as_uri()}"
    at_controllers = {
        "sasl.jaas.config": f"{OAUTH_MODULE} required;",
        "sasl.server.callback.handler.class": f"{PACKAGE}.OAuthBearerValidatorCallbackHandler",
        "sasl.oauthbearer.jwks.endpoint.url": issuer.key_set_file.as_uri(),
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": issuer.url,
        "sasl.login.callback.handler.class": f"{PACKAGE}.OAuthBearerLoginCallbackHandler",
        "sasl.oauthbearer.token.endpoint.url": issuer.token_url,
        "sasl.oauthbearer.client.credentials.client.id": "node",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    }
    options = f'unsecuredLoginStringClaim_sub="node" unsecuredLoginLifetimeSeconds="{LIFETIME_S}"'
    return NodeSecurity(
        protocol="SASL_PLAINTEXT",
        settings={
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.mechanism.controller.protocol": "OAUTHBEARER",
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "kvorum.sasl.oauthbearer.allowed.urls": urls,
            "listener.name.secret.oauthbearer.sasl.jaas.config": (
                f"{OAUTH_MODULE} required {options};"
            ),
            **{
                f"listener.name.controller.oauthbearer.{key}": value
                for key, value in at_controllers.items()
            },
        },
        super_users="User:node;User:admin",
        client={
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
            "enable.sasl.oauthbearer.unsecure.jwt": "true",
            "sasl.oauthbearer.config": "principal=admin",
        },
    )


@pytest.fixture(scope="module")
def cluster(java: Java, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    issuer = TokenIssuer(tmp_path_factory.mktemp("issuer"), User("node", SECRET))
    issuer.start()
    security = by_tokens(issuer)
    urls = security.settings["kvorum.sasl.oauthbearer.allowed.urls"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JAVA_TOOL_OPTIONS", f"-D{ALLOWED}={urls}")
        with ToolRunner(java) as tools:
            folder = tmp_path_factory.mktemp("nodes")
            made = SecuredCluster(folder, security, java, tools, VOTERS, BROKERS)
            with made.running():
                yield made
    issuer.stop()


def test_all_replicate_serve_and_coordinate_by_tokens(cluster: SecuredCluster) -> None:
    cluster.exchange_records("shared", partitions=4, records=400)


def test_records_go_on_after_the_end_of_the_first_tokens(cluster: SecuredCluster) -> None:
    real = cluster.brokers[11]
    before = len(RENEWED.findall(real.log_text))
    wait_for(
        lambda: len(RENEWED.findall(real.log_text)) >= before + 2,
        "the real broker has had other tokens, and so the others",
    )
    cluster.exchange_records("later", partitions=4, records=400)
    ours = [*cluster.controllers.values(), *cluster.brokers.values()]
    assert [node.node_id for node in ours if SESSION_ENDED in node.log_text] == []
    assert [node.node_id for node in ours if "failed authentication" in node.log_text] == []


def test_another_voter_leads_once_the_leader_is_gone(cluster: SecuredCluster) -> None:
    for node in cluster.controllers.values():
        node.kill()
        cluster.create(f"without-{node.node_id}", 1)
        node.start()


def test_no_node_logs_a_secret(cluster: SecuredCluster) -> None:
    logs = {path: path.read_text() for path in cluster.folder.glob("*/output.txt")}
    assert len(logs) == len(VOTERS) + len(BROKERS)
    assert [path for path, text in logs.items() if SECRET in text or "Bearer ey" in text] == []
