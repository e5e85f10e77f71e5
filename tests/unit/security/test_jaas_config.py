"""The texts of `sasl.jaas.config`, as Kafka's JaasConfig reads or refuses them."""

import pytest

from kvorum.security.jaas_config import InvalidJaasConfigError, parse_jaas_config


def test_words_quotes_escapes_and_comments_are_those_of_java() -> None:
    text = r"""
        org.example.Own$Module /* a comment */ REQUIRED // another one; b="c"
        user_alice="a \"quoted\" wor\144, a tab\t and a \q" user_bob=b.o-b_$1
        "user_c@d"='single "double"' / and one more
        user_bob='the last' empty="";
    """
    module = parse_jaas_config(text)
    assert module.class_name == "org.example.Own$Module"
    assert module.options == {
        "user_alice": 'a "quoted" word, a tab\t and a q',
        "user_bob": "the last",
        "user_c@d": 'single "double"',
        "empty": "",
    }


def test_a_slash_alone_at_the_end_of_a_line_makes_the_next_line_a_comment() -> None:
    text = "org.foo.Bar required user_a=b /\n user_c=d\n user_e=f;"
    assert parse_jaas_config(text).options == {"user_a": "b", "user_e": "f"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Login module not specified in JAAS config"),
        (" // org.foo.Bar required;", "Login module not specified in JAAS config"),
        ("org.foo.Bar", "Login module control flag not specified in JAAS config"),
        ("org.foo.Bar;", "Login module control flag is not available in the JAAS config"),
        (
            "KafkaClient { org.foo.Bar required; };",
            "Login module control flag is not available in the JAAS config",
        ),
        ("org.foo.Bar foo;", "Invalid login module control flag 'foo' in JAAS config"),
        ("org.foo.Bar required", "JAAS config entry not terminated by semi-colon"),
        ('org.foo.Bar required a="b"', "JAAS config entry not terminated by semi-colon"),
        ('org.foo.Bar required a="b\\', "JAAS config entry not terminated by semi-colon"),
        ('"" required;', "Login module without a name in JAAS config"),
        ("7 required;", "Login module without a name in JAAS config"),
        ("org.foo.Bar required a=;", "Value not specified for key 'a' in JAAS config"),
        ("org.foo.Bar required a=1;", "Value not specified for key 'a' in JAAS config"),
        ("org.foo.Bar required a", "Value not specified for key 'a' in JAAS config"),
        ('org.foo.Bar required a@b="x";', "Value not specified for key 'a' in JAAS config"),
        (
            "org.foo.Bar required; org.foo.Bar required;",
            "JAAS config property contains 2 login modules, should be 1 module",
        ),
    ],
)
def test_a_text_that_is_not_one_login_module_is_refused_with_kafkas_words(
    text: str, message: str
) -> None:
    with pytest.raises(InvalidJaasConfigError) as raised:
        parse_jaas_config(text)
    assert str(raised.value) == message


def test_no_option_is_in_the_text_of_a_module() -> None:
    assert "secret" not in repr(parse_jaas_config("org.foo.Bar required user_a=secret;"))
