"""Whether a cluster can use the data that a folder has already."""

from pathlib import Path

from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.embedded.identity import load_identity
from kvorum.node.embedded.node import ClusterSize, WrongSizeError, size_of


class WrongSecurityError(ValueError):
    """The data is of a cluster whose clients have another security."""


def check_size(folder: Path, size: ClusterSize) -> None:
    """Raise WrongSizeError if a folder has data that a cluster of this size cannot use."""
    known = size_of(folder)
    if known is None:
        return
    if known.controllers != size.controllers or known.is_combined != size.is_combined:
        raise WrongSizeError(
            f"the data in {folder} is of a cluster with {known.controllers} controller(s) and "
            f"{known.brokers} broker(s)"
        )


def check_security(folder: Path, security: SecurityMode | None) -> None:
    """Raise WrongSecurityError if a folder has data of a cluster with another security."""
    known = load_identity(folder)
    if known is not None and known.security != security:
        raise WrongSecurityError(
            f"the data in {folder} is of a cluster with {_described(known.security)}, "
            f"not with {_described(security)}"
        )


def _described(security: SecurityMode | None) -> str:
    return "plain clients" if security is None else f"security {security.value}"
