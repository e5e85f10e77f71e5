"""The mechanisms of a listener, made out of login modules and stored credentials."""

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

from kvorum.metadata.credentials_image import ScramMechanism
from kvorum.metadata.image import MetadataImage
from kvorum.security.allowed_url import FILE
from kvorum.security.http_place import http_place
from kvorum.security.jaas_config import LoginModule, missing_of_server
from kvorum.security.oauth_bearer_server import OAuthBearerServer, ValidateToken
from kvorum.security.plain_server import PlainServer
from kvorum.security.renewable import Renewable
from kvorum.security.retries import Retries
from kvorum.security.sasl_login_modules import (
    OAUTHBEARER,
    PLAIN,
    PLAIN_MODULE,
    SCRAM,
    read_login_module,
)
from kvorum.security.sasl_server import AuthenticatedUser, NewSaslServer, SaslMechanism
from kvorum.security.sasl_settings import MechanismSettings, SaslSettings
from kvorum.security.scram_messages import ClientFirst
from kvorum.security.scram_server import ScramLogin, ScramServer
from kvorum.security.token_credentials import TokenCredentials
from kvorum.security.unsecured_token import UnsecuredTokenValidator, unsecured_token_settings

_USER_OPTION: Final = "user_"


class LoginSource(NamedTuple):
    """The needs of mechanisms at a login: the metadata, a part of a new nonce, and the time.

    `note_refusal` takes why a token of OAUTHBEARER is refused, which its client does not hear;
    `note_renewable` takes key sets at a URL, which are not there before they are renewed.
    """

    published: Callable[[], MetadataImage]
    tokens: TokenCredentials
    new_nonce: Callable[[], str]
    wall_ms: Callable[[], int]
    note_refusal: Callable[[str], None]
    note_renewable: Callable[[Renewable], None]

    def begin_scram(self, mechanism: ScramMechanism) -> ScramServer:
        """Begin an authentication by SCRAM."""
        return ScramServer(mechanism, partial(self._find, mechanism), self.new_nonce())

    def _find(self, mechanism: ScramMechanism, first: ClientFirst) -> ScramLogin | None:
        image = self.published()
        if first.is_by_token:
            return self.tokens.find(image.delegation_tokens, mechanism, first.user)
        credential = image.scram.credentials.get((mechanism, first.user))
        return None if credential is None else ScramLogin(credential, AuthenticatedUser(first.user))


def mechanisms_of(
    listener: str, settings: SaslSettings, source: LoginSource
) -> Mapping[str, SaslMechanism]:
    """Return the mechanisms of a listener in the order of its settings.

    Raises InvalidJaasConfigError for one whose login module is missing or wrong,
    InvalidOAuthSettingsError for one that cannot verify tokens, ImportError without the library.
    """
    return MappingProxyType(
        {
            name: _mechanism(listener, name, settings.mechanisms[name], source)
            for name in settings.enabled_mechanisms
        }
    )


def _module_of(listener: str, mechanism: str, settings: MechanismSettings) -> LoginModule:
    text = settings.jaas_config
    if text is None:
        raise missing_of_server(listener, mechanism)
    return read_login_module(text)


def _mechanism(
    listener: str, name: str, settings: MechanismSettings, source: LoginSource
) -> SaslMechanism:
    module = _module_of(listener, name, settings)
    begin: NewSaslServer
    if name == PLAIN:
        begin = _plain(module)
    elif name == OAUTHBEARER:
        validate = _token_validator(settings, module, source)
        begin = partial(OAuthBearerServer, validate, source.note_refusal)
    else:
        begin = partial(source.begin_scram, SCRAM[name])
    return SaslMechanism(begin, settings.session_ms_max)


def _token_validator(
    settings: MechanismSettings, module: LoginModule, source: LoginSource
) -> ValidateToken:
    if not settings.verifies_tokens:
        return UnsecuredTokenValidator(unsecured_token_settings(module.options), source.wall_ms)
    oauth = settings.oauth
    parts = oauth.checked_url()
    # Imported here: only nodes that verify tokens need the library that does it.
    from kvorum.security.key_set_endpoint import JsonWebKeyEndpoint  # noqa: PLC0415 - see above
    from kvorum.security.signed_token import SignedTokenValidator, file_validator  # noqa: PLC0415 - see above

    if parts.scheme == FILE:
        return file_validator(oauth, oauth.file_at(parts), source.wall_ms)
    keys = JsonWebKeyEndpoint(
        http_place(parts.geturl(), module.options),
        refresh_ms=oauth.refresh_ms,
        retries=Retries(oauth.retry_backoff_ms, oauth.retry_backoff_ms_max),
    )
    source.note_renewable(keys)
    return SignedTokenValidator(oauth, keys, source.wall_ms)


def _plain(module: LoginModule) -> NewSaslServer:
    """Return PLAIN with the users of its own module; as in Kafka, another one has none."""
    passwords = {
        name.removeprefix(_USER_OPTION): password
        for name, password in module.options.items()
        if name.startswith(_USER_OPTION) and module.class_name == PLAIN_MODULE
    }
    return lambda: PlainServer(passwords)
