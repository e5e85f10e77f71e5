"""A node's configuration, its authorizer and tokens: values, defaults, and clear refusals."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.node import properties

from kvorum.groups.migration_policy import MigrationPolicy
from kvorum.metadata.config_definitions import BROKER_CONFIGS, keys_of
from kvorum.metadata.delegation_tokens import TokenSettings
from kvorum.metadata.standard_authorizer import AuthorizerRules
from kvorum.node.config import (
    ConfigError,
    Listener,
    NodeConfig,
    ProcessRole,
    SecuritySettings,
    load_properties,
    parse_overrides,
)
from kvorum.node.config.known import KEYS_IN_USE, known_but_unused, unknown
from kvorum.security.oauth_login_settings import OAuthLoginSettings
from kvorum.security.oauth_settings import OAuthSettings
from kvorum.security.security_protocol import SecurityProtocol

BOTH = properties.BOTH | {"log.dirs": "/data/a, /data/b"}
PLAINTEXT = SecurityProtocol.PLAINTEXT
KAFKAS_ASSIGNORS = "org.apache.kafka.coordinator.group.assignor"
AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def test_a_combined_node_has_kafkas_defaults() -> None:
    config = NodeConfig.from_properties(BOTH)
    assert config.roles == {ProcessRole.BROKER, ProcessRole.CONTROLLER}
    assert config.listeners.bound == (
        Listener("PLAINTEXT", PLAINTEXT, None, 9092),
        Listener("CONTROLLER", PLAINTEXT, None, 9093),
    )
    assert config.listeners.brokers == config.listeners.advertised_brokers
    assert [str(each) for each in config.listeners.controllers] == ["CONTROLLER://:9093"]
    assert config.log_directories == ("/data/a", "/data/b")
    assert config.metadata_log.directory == "/data/a"
    assert config.metadata_log.idle_interval_ms == 500
    assert not config.quorum.is_static
    assert config.broker.session_timeout_ms == 9000
    assert config.topics.partitions_default == 1
    assert config.network.request_bytes_max == 104857600
    assert config.warnings == ()
    assert (known_but_unused(BOTH), unknown(BOTH)) == ((), ())


def test_what_was_written_stays_at_hand_as_text() -> None:
    config = NodeConfig.from_properties(BOTH | {"num.partitions": " 3 "})
    assert config.topics.partitions_default == 3
    assert config.texts["num.partitions"] == " 3 "
    assert config.texts["broker.id"] == "1"


def test_keys_without_effect_are_named() -> None:
    names = {*BOTH, "num.io.threads", "listener.name.plaintext.foo", "zookeeper.connect"}
    assert known_but_unused(names) == ("listener.name.plaintext.foo", "num.io.threads")
    assert unknown(names) == ("zookeeper.connect",)


def test_heartbeats_slower_than_half_a_session_are_complained_about() -> None:
    config = NodeConfig.from_properties(BOTH | {"broker.heartbeat.interval.ms": "5000"})
    assert len(config.warnings) == 1
    assert "5000" in config.warnings[0]


def test_ports_may_be_left_to_the_system() -> None:
    listeners = "PLAINTEXT://localhost:0,CONTROLLER://localhost:0"
    config = NodeConfig.from_properties(BOTH | {"listeners": listeners})
    assert [each.port for each in config.listeners.bound] == [0, 0]


TLS = BOTH | {
    "listeners": "PLAINTEXT://:9092,Secret://:9094,CONTROLLER://:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECRET:SSL",
    "ssl.keystore.location": "of the node",
    "ssl.keystore.password": "of the node",
}


def test_the_keys_of_a_listener_count_before_those_of_the_node() -> None:
    own = {
        "listener.name.secret.ssl.keystore.location": "of the listener",
        "listener.name.secret.ssl.client.auth": "required",
        # A prefix in upper case has no effect.
        "listener.name.SECRET.ssl.keystore.password": "of nobody",
        # An empty value is a value.
        "listener.name.secret.ssl.truststore.location": "",
    }
    config = NodeConfig.from_properties(TLS | own)
    (name,) = config.ssl
    settings = config.ssl[name]
    assert name == "SECRET"
    assert settings.key_store.location == "of the listener"
    assert settings.key_store.password == "of the node"
    assert settings.client_auth == "required"
    assert settings.trust_store.location == ""
    unused = "listener.name.secret.ssl.provider"
    assert unused in known_but_unused({**TLS, **own, unused: "x"})
    assert "listener.name.secret.ssl.client.auth" not in known_but_unused(own)


def test_a_broker_has_the_keys_of_the_controllers_listener_to_connect_to_it() -> None:
    own = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:SSL",
        "listener.name.controller.ssl.keystore.location": "of the controllers",
    }
    config = NodeConfig.from_properties(BROKER | own)
    assert config.ssl["CONTROLLER"].key_store.location == "of the controllers"


@pytest.mark.parametrize("prefix", ["", "listener.name.secret."])
def test_a_wrong_wish_for_certificates_of_clients_is_refused(prefix: str) -> None:
    message = (
        "Invalid value foo for configuration ssl.client.auth: String must be one of: required, "
        "requested, none"
    )
    with pytest.raises(ConfigError, match=message):
        NodeConfig.from_properties(TLS | {f"{prefix}ssl.client.auth": "foo"})


BROKER = properties.BOTH | {
    "process.roles": "broker",
    "listeners": "PLAINTEXT://:9092",
    "log.dirs": "data",
}


SASL = BOTH | {
    "listeners": "PLAINTEXT://:9092,Secret://:9094,CONTROLLER://:9093",
    "listener.security.protocol.map": (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECRET:SASL_PLAINTEXT"
    ),
    "listener.name.secret.sasl.enabled.mechanisms": "PLAIN",
    "listener.name.secret.plain.sasl.jaas.config": "secret",
}


def test_a_listener_has_the_mechanisms_and_modules_of_its_own_keys() -> None:
    others = {
        # Neither without its mechanism, nor without its listener, has the key an effect.
        "listener.name.secret.sasl.jaas.config": "of nobody",
        "sasl.jaas.config": "of nobody",
        "listener.name.secret.sasl.server.max.receive.size": "1000",
    }
    config = NodeConfig.from_properties(SASL | others)
    (settings,) = config.sasl.values()
    assert settings.enabled_mechanisms == ("PLAIN",)
    assert settings.receive_bytes_max == 1000
    assert settings.mechanisms["PLAIN"].jaas_config == "secret"
    assert "secret" not in repr(config.sasl)
    assert known_but_unused(SASL | others) == (
        "listener.name.secret.sasl.jaas.config",
        "sasl.jaas.config",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"listener.name.secret.sasl.enabled.mechanisms": "PLAIN,GSSAPI,FOO"},
            "Listener SECRET has GSSAPI, FOO in sasl.enabled.mechanisms, but kvorum",
        ),
        (
            {"listener.name.secret.plain.sasl.server.callback.handler.class": "org.foo.Bar"},
            "callback.handler.class is org.foo.Bar, but kvorum has no such handlers",
        ),
        (
            {
                "listener.name.secret.sasl.enabled.mechanisms": "OAUTHBEARER",
                "listener.name.secret.oauthbearer.sasl.server.callback.handler.class": "Bar",
            },
            "callback.handler.class is Bar, but kvorum has org.apache.kafka.common.security",
        ),
        (
            {
                "listener.name.secret.sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwt.validator.class": "Bar",
            },
            "jwt.validator.class is Bar, but kvorum makes the checks of Kafka's own alone",
        ),
    ],
)
def test_what_of_sasl_only_kafka_serves_is_refused(changes: dict[str, str], message: str) -> None:
    assert NodeConfig.from_properties(SASL | changes, must_be_servable=False)
    with pytest.raises(ConfigError, match=message):
        NodeConfig.from_properties(SASL | changes)


BETWEEN_NODES = BOTH | {
    "listeners": "INSIDE://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "INSIDE",
    "listener.security.protocol.map": "INSIDE:SASL_SSL,CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "sasl.mechanism.controller.protocol": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
    "listener.name.controller.plain.sasl.jaas.config": "secret of controllers",
    "listener.name.inside.scram-sha-512.sasl.jaas.config": "secret of brokers",
}


def test_a_node_logs_in_by_the_mechanism_and_module_of_the_others_listener() -> None:
    config = NodeConfig.from_properties(BETWEEN_NODES)
    assert {name: (one.mechanism, one.jaas_config) for name, one in config.logins.items()} == {
        "CONTROLLER": ("PLAIN", "secret of controllers"),
        "INSIDE": ("SCRAM-SHA-512", "secret of brokers"),
    }
    assert "secret" not in repr(config.logins)
    assert known_but_unused(BETWEEN_NODES) == ()


def test_the_keys_of_tokens_are_those_of_the_mechanism_of_the_others_listener() -> None:
    changes = {
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.login.callback.handler.class": "not.this",
        "listener.name.controller.oauthbearer.sasl.login.callback.handler.class": "this",
        "sasl.oauthbearer.scope": "not this",
        "listener.name.controller.sasl.oauthbearer.scope": "this",
        "listener.name.inside.sasl.oauthbearer.scope": "not this",
        "sasl.oauthbearer.client.credentials.client.secret": "secret of nodes",
    }
    config = NodeConfig.from_properties(BETWEEN_NODES | changes)
    oauth = config.logins["CONTROLLER"].oauth
    assert (oauth.handler, oauth.scope, oauth.client_secret) == ("this", "this", "secret of nodes")
    assert "secret" not in repr(config.logins)
    assert known_but_unused(BETWEEN_NODES | changes) == ()


def test_a_node_of_one_role_logs_in_where_it_connects_to() -> None:
    without_sockets = BETWEEN_NODES | {"process.roles": "broker", "listeners": "INSIDE://:9092"}
    assert set(NodeConfig.from_properties(without_sockets).logins) == {"CONTROLLER", "INSIDE"}
    controller = BETWEEN_NODES | {
        "process.roles": "controller",
        "listeners": "CONTROLLER://:9093",
    }
    del controller["inter.broker.listener.name"]
    assert set(NodeConfig.from_properties(controller).logins) == {"CONTROLLER"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"sasl.mechanism.controller.protocol": "GSSAPI"},
            "sasl.mechanism.controller.protocol is GSSAPI, but kvorum's nodes log in by PLAIN",
        ),
        (
            {
                "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
                "controller.quorum.voters": "1@a:9093,2@b:9093",
            },
            "the voters of controller.quorum.voters know the users of SCRAM only once",
        ),
    ],
)
def test_a_login_that_kvorum_does_not_have_or_voters_cannot_is_refused(
    changes: dict[str, str], message: str
) -> None:
    assert NodeConfig.from_properties(BETWEEN_NODES | changes, must_be_servable=False)
    with pytest.raises(ConfigError, match=message):
        NodeConfig.from_properties(BETWEEN_NODES | changes)


def test_a_voter_alone_may_log_in_by_scram() -> None:
    alone = {
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
        "controller.quorum.voters": "1@a:9093",
    }
    config = NodeConfig.from_properties(BETWEEN_NODES | alone)
    assert config.logins["CONTROLLER"].mechanism == "SCRAM-SHA-256"


def test_the_mechanism_between_brokers_is_one_of_their_listener() -> None:
    of_listener = {"listener.name.inside.sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(ConfigError, match=r"must be included in sasl\.enabled\.mechanisms"):
        NodeConfig.from_properties(BETWEEN_NODES | of_listener)


@pytest.mark.parametrize(
    ("keys", "plain_ms", "scram_ms"),
    [
        ((), 0, 0),
        (("connections.max.reauth.ms",), 1, 1),
        (("connections.max.reauth.ms", "listener.name.secret.connections.max.reauth.ms"), 2, 2),
        (
            (
                "connections.max.reauth.ms",
                "listener.name.secret.connections.max.reauth.ms",
                "listener.name.secret.plain.connections.max.reauth.ms",
            ),
            3,
            2,
        ),
        # Prefixes in upper case have no effect, nor has a mechanism without a listener.
        (("listener.name.secret.PLAIN.connections.max.reauth.ms",), 0, 0),
        (("plain.connections.max.reauth.ms",), 0, 0),
    ],
)
def test_a_mechanism_has_its_own_longest_session_or_that_of_its_listener_or_node(
    keys: tuple[str, ...], plain_ms: int, scram_ms: int
) -> None:
    changes = {key: str(number) for number, key in enumerate(keys, start=1)}
    enabled = {"listener.name.secret.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256"}
    (settings,) = NodeConfig.from_properties(SASL | enabled | changes).sasl.values()
    lengths = {name: each.session_ms_max for name, each in settings.mechanisms.items()}
    assert lengths == {"PLAIN": plain_ms, "SCRAM-SHA-256": scram_ms}


@pytest.mark.parametrize(
    "key",
    [
        "connections.max.reauth.ms",
        "plain.connections.max.reauth.ms",
        "sasl.server.max.receive.size",
        "ssl.client.auth",
    ],
)
def test_a_listeners_own_value_that_is_not_valid_is_refused(key: str) -> None:
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECRET:SASL_SSL"
    of_node = TLS | {
        "listener.security.protocol.map": protocols,
        "sasl.enabled.mechanisms": "PLAIN",
    }
    with pytest.raises(ConfigError, match=f"for configuration {key.removeprefix('plain.')}"):
        NodeConfig.from_properties(of_node | {f"listener.name.secret.{key}": "many"})


def test_a_listener_with_sasl_asks_for_certificates_by_its_own_key_only() -> None:
    protocols = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECRET:SASL_SSL"
    of_node = TLS | {
        "listener.security.protocol.map": protocols,
        "sasl.enabled.mechanisms": "PLAIN",
        "ssl.client.auth": "required",
    }
    assert NodeConfig.from_properties(of_node).ssl["SECRET"].client_auth == "none"
    own = {"listener.name.secret.ssl.client.auth": "requested"}
    assert NodeConfig.from_properties(of_node | own).ssl["SECRET"].client_auth == "requested"


@pytest.mark.parametrize("properties", [BROKER, BOTH], ids=["broker", "combined"])
def test_every_other_key_of_sasl_is_named_as_one_without_effect(
    properties: dict[str, str],
) -> None:
    keys = {name for name in BROKER_CONFIGS if name.startswith("sasl.")}
    assert "sasl.jaas.config" in keys
    in_use = {
        "sasl.enabled.mechanisms",
        "sasl.mechanism.controller.protocol",
        "sasl.mechanism.inter.broker.protocol",
        "sasl.server.max.receive.size",
        *keys_of(OAuthSettings),
        *keys_of(OAuthLoginSettings),
    }
    values = {name: BROKER_CONFIGS[name].default for name in keys - in_use}
    given = {name: value for name, value in values.items() if value is not None}
    NodeConfig.from_properties(properties | given)
    assert known_but_unused(properties | given) == tuple(sorted(given))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "listeners",
            "PLAINTEXT:9092",
            (
                "Error creating broker listeners from '[PLAINTEXT:9092]': Unable to parse "
                "PLAINTEXT:9092 to a broker endpoint"
            ),
        ),
        (
            "node.id",
            "one",
            "Invalid value one for configuration broker.id: Not a number of type INT",
        ),
        (
            "process.roles",
            "boss",
            (
                "Invalid value boss for configuration process.roles: String must be one of: "
                "broker, controller"
            ),
        ),
        (
            "controller.quorum.voters",
            "2@b:9093",
            (
                "If process.roles contains the 'controller' role, the node id 1 must be included "
                "in the set of voters controller.quorum.voters=Set(2)"
            ),
        ),
        (
            "controller.listener.names",
            "OTHER,CONTROLLER",
            (
                "controller.listener.names must only contain values appearing in the 'listeners' "
                "configuration when running the KRaft controller role"
            ),
        ),
        (
            "advertised.listeners",
            "PLAINTEXT://0.0.0.0:9092",
            (
                "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a "
                "routable IP address."
            ),
        ),
        (
            "controller.quorum.fetch.max.bytes",
            "0",
            (
                "Invalid value 0 for configuration controller.quorum.fetch.max.bytes: Value must "
                "be at least 1"
            ),
        ),
    ],
)
def test_a_bad_value_is_refused_in_one_line_of_kafkas(name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        NodeConfig.from_properties(BOTH | {name: text})
    assert str(refusal.value) == message


@pytest.mark.parametrize("name", ["process.roles", "node.id", "controller.listener.names"])
def test_a_key_that_must_be_there_is_asked_for(name: str) -> None:
    properties = {key: text for key, text in BOTH.items() if key != name}
    with pytest.raises(ConfigError, match=f'configuration "{name}" which has no default value'):
        NodeConfig.from_properties(properties)


@given(st.dictionaries(st.sampled_from(sorted(KEYS_IN_USE)), st.text(max_size=30), max_size=4))
def test_any_texts_make_a_configuration_or_one_error(texts: dict[str, str]) -> None:
    with suppress(ConfigError):
        assert NodeConfig.from_properties(BOTH | texts).node_id >= 0


def test_a_file_is_read_as_java_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# a comment\nnode.id : 1\nlog.dirs=/a,\\\n   /b\nname\\ x=\\u00e9\n")
    assert load_properties(file) == {"node.id": "1", "log.dirs": "/a,/b", "name x": "\u00e9"}


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Cannot read the configuration file .*: No such file"):
        load_properties(tmp_path / "nothing")


def test_a_malformed_file_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("a=\\u12")
    with pytest.raises(ConfigError, match="Malformed configuration file"):
        load_properties(file)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.properties"
    file.write_bytes(data)
    with suppress(ConfigError):
        assert isinstance(load_properties(file), dict)


def test_overrides_split_at_the_first_equals_sign() -> None:
    assert parse_overrides(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    with pytest.raises(ConfigError, match="Invalid override 'a': expected key=value"):
        parse_overrides(["a"])


def security(texts: dict[str, str]) -> SecuritySettings:
    return NodeConfig.from_properties(properties.BOTH | texts).security


def test_authorizer_and_secret_are_set_only_by_their_keys() -> None:
    assert security({"super.users": "User:root"}) == SecuritySettings(None, TokenSettings())
    assert security({"delegation.token.secret.key": ""}).tokens.secret_key is None


@pytest.mark.parametrize(
    ("text", "users"),
    [
        ("", frozenset[str]()),
        ("User:a", {"User:a"}),
        (" User:a ; Group:b;;User:c:d ", {"User:a", "Group:b", "User:c:d"}),
        ("User:a,User:b", {"User:a,User:b"}),
    ],
)
def test_super_users_stand_between_semicolons(text: str, users: set[str]) -> None:
    rules = security(AUTHORIZER | {"super.users": text}).authorizer
    assert rules == AuthorizerRules(frozenset(users))


@pytest.mark.parametrize(
    ("text", "is_allowed"), [(" TRUE ", True), ("true", True), ("yes", False), ("", False)]
)
def test_what_holds_without_entries(text: str, *, is_allowed: bool) -> None:
    rules = security(AUTHORIZER | {"allow.everyone.if.no.acl.found": text}).authorizer
    assert rules == AuthorizerRules(allows_without_entries=is_allowed)


def test_tokens_have_kafkas_keys() -> None:
    texts = {
        "delegation.token.secret.key": "s3cret",
        "delegation.token.max.lifetime.ms": "3",
        "delegation.token.expiry.time.ms": "2",
        "delegation.token.expiry.check.interval.ms": "1",
    }
    assert security(texts).tokens == TokenSettings(b"s3cret", 3, 2, 1)
    assert "s3cret" not in repr(security(texts))


def test_a_user_without_a_type_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        security(AUTHORIZER | {"super.users": "User:a;root"})
    assert str(caught.value) == (
        "super.users: expected a string in format principalType:principalName but got root"
    )


def test_another_authorizer_is_refused_where_it_has_to_serve() -> None:
    texts = {"authorizer.class.name": "com.example.Mine"}
    with pytest.raises(ConfigError, match=r"authorizer\.class\.name is com\.example\.Mine, "):
        security(texts)
    config = NodeConfig.from_properties(properties.BOTH | texts, must_be_servable=False)
    assert config.security.authorizer is None


def test_the_keys_of_the_authorizer_are_known() -> None:
    names = {*AUTHORIZER, "super.users", "allow.everyone.if.no.acl.found"}
    assert (known_but_unused(names), unknown(names)) == ((), ())


def test_assignors_are_read_by_name_and_by_kafkas_class() -> None:
    classes = ",".join(f"{KAFKAS_ASSIGNORS}.{each}Assignor" for each in ("Range", "Uniform"))
    texts = {"group.consumer.assignors": classes, "group.consumer.migration.policy": "UpGrade"}
    settings = NodeConfig.from_properties(properties.BOTH | texts).groups.coordinator.consumer
    assert settings.assignors == ("range", "uniform")
    assert settings.migration_policy is MigrationPolicy.UPGRADE


@pytest.mark.parametrize("word", ["simple", f"{KAFKAS_ASSIGNORS}.SimpleAssignor"])
def test_share_groups_have_kafkas_assignor(word: str) -> None:
    NodeConfig.from_properties(properties.BOTH | {"group.share.assignors": word})
    assert known_but_unused({"group.share.assignors"}) == ()


def test_an_assignor_of_share_groups_in_java_is_refused_where_it_has_to_serve() -> None:
    texts = properties.BOTH | {"group.share.assignors": "com.example.Mine"}
    with pytest.raises(ConfigError, match=r"assignors has com\.example\.Mine, but kvorum runs no"):
        NodeConfig.from_properties(texts)
    NodeConfig.from_properties(texts, must_be_servable=False)


def test_an_assignor_in_java_is_refused_where_it_has_to_serve() -> None:
    texts = {"group.consumer.assignors": "range,com.example.Mine"}
    with pytest.raises(ConfigError, match=r"assignors has com\.example\.Mine, but kvorum runs no"):
        NodeConfig.from_properties(properties.BOTH | texts)
    config = NodeConfig.from_properties(properties.BOTH | texts, must_be_servable=False)
    assert config.groups.coordinator.consumer.assignors == ("range", "com.example.Mine")


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [
        ("bidirectional", True, True),
        ("upgrade", True, False),
        ("downgrade", False, True),
        ("disabled", False, False),
    ],
)
def test_a_policy_allows_a_groups_change_of_protocol(
    policy: str, upgrade: bool, downgrade: bool
) -> None:
    found = MigrationPolicy(policy)
    assert (found.allows_upgrade, found.allows_downgrade) == (upgrade, downgrade)
