"""The settings of TLS as text, which may get into a log."""

from kvorum.metadata.config_definitions import BROKER_CONFIGS, ConfigType, keys_of, read_settings
from kvorum.security.ssl_settings import SslSettings

SECRET = "do not show"


def test_no_password_and_no_key_is_in_the_text_of_settings() -> None:
    secrets = {
        name
        for name, definition in BROKER_CONFIGS.items()
        if definition.type is ConfigType.PASSWORD and name in keys_of(SslSettings)
    }
    values = {name: SECRET if name in secrets else name for name in keys_of(SslSettings)}
    # Certificates are public, though Kafka hides them, too.
    values |= {name: "public" for name in secrets if "certificate" in name}
    settings = read_settings(SslSettings, values.__getitem__)
    assert settings.key_store.key == SECRET
    assert SECRET not in repr(settings)
