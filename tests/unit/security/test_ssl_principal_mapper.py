"""The users that mapping rules name; what is expected is what Kafka's own class has answered."""

import pytest

from kvorum.security.ssl_principal_mapper import (
    InvalidMappingRuleError,
    NoMappedNameError,
    SslPrincipalMapper,
)

NAME = "CN=kafka-server1,OU=KAFKA,O=Acme,L=X,C=DE"


@pytest.mark.parametrize(
    ("rules", "user"),
    [
        ("DEFAULT", NAME),
        ("  DEFAULT ", NAME),
        ("RULE:^CN=(.*?),.*$/$1/", "kafka-server1"),
        ("RULE:^CN=(.*?),.*$/$1/U", "KAFKA-SERVER1"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2@$3/", "kafka-server1@KAFKA@$3"),
        ("RULE:^CN=(.*?),.*$/$12/", "kafka-server12"),
        ("RULE:KAFKA/x/,DEFAULT", NAME),
        ("RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/L,DEFAULT", "kafka"),
        ("RULE:^CN=(.*?),.*$/a\\/b/", "a/b"),
        ("RULE:^CN=.*$//", ""),
    ],
)
def test_the_first_rule_that_matches_the_whole_name_gives_the_user(rules: str, user: str) -> None:
    assert SslPrincipalMapper(rules).name_of(NAME) == user


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param("RULE:^cn=(.*?),.*$/$1/L", id="other case"),
        pytest.param("", id="no rules"),
        pytest.param("RULE:.*/$1/", id="no such group"),
        pytest.param("RULE:^CN=(.*?),.*$/$2@$3/", id="two references that are literal"),
        pytest.param("RULE:(.*)/$x/", id="no number"),
    ],
)
def test_a_name_without_a_rule_or_a_replacement_is_refused(rules: str) -> None:
    with pytest.raises(NoMappedNameError, match="Failed to map name for 'CN=kafka-server1,OU="):
        SslPrincipalMapper(rules).name_of(NAME)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("FOO", "Invalid rule: `FOO`, unmatched substring: `FOO`"),
        (
            "RULE:^CN=(.*?),.*$/$1",
            "Invalid rule: `RULE:^CN=(.*?)`, unmatched substring: `RULE:^CN=(.*?)`",
        ),
        (
            "RULE:^CN=(.*?),.*$/$1/X",
            "Invalid rule: `RULE:^CN=(.*?),.*$/$1/X`, unmatched substring: `X`",
        ),
    ],
)
def test_a_text_that_is_not_a_rule_is_refused_with_kafkas_message(rules: str, message: str) -> None:
    with pytest.raises(InvalidMappingRuleError) as refused:
        SslPrincipalMapper(rules)
    assert str(refused.value) == message
