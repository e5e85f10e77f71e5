"""The errors of settings of TLS, whose text is Kafka's where Kafka refuses the same."""


class InvalidSslSettingsError(ValueError):
    """Settings of TLS that no listener can be made with; one line for the operator."""


class UnfitStoresError(InvalidSslSettingsError):
    """Stores that can be read, but not used: in Kafka, another exception than for the others."""


class InvalidOAuthSettingsError(ValueError):
    """Settings by which no token can be had or verified; the message is Kafka's where it has one.

    Nothing that is secret is in it.
    """
