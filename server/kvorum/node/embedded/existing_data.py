"""Whether a cluster can use the data that a folder has already."""

from pathlib import Path
from typing import Final

from kvorum.node.embedded.client_security.mode import SecurityMode
from kvorum.node.embedded.client_security.secret_files import SECURITY_FOLDER
from kvorum.node.embedded.identity import IDENTITY_FILE, load_identity
from kvorum.node.embedded.node import (
    DATA_DIRECTORY,
    PROPERTIES_FILE,
    ClusterSize,
    WrongSizeError,
    size_of,
)
from kvorum.storage.small_files.meta_properties import META_PROPERTIES_FILE

NO_DATA: Final = frozenset({SECURITY_FOLDER, f"{IDENTITY_FILE}.tmp", "lost+found"})
"""Names in a folder without data: what a first start that was interrupted has left, and the folder
that a file system of its own begins with."""
NAMED_COUNT_MAX: Final = 3
"""The number of foreign files that an error names."""


class ForeignFolderError(ValueError):
    """The folder has files, and is not that of a cluster of embedded nodes."""


class WrongSecurityError(ValueError):
    """The data is of a cluster whose clients have another security."""


def check_is_ours(folder: Path) -> None:
    """Raise ForeignFolderError unless a folder is missing, empty, or that of a cluster.

    Raises OSError if it cannot be read.
    """
    if not folder.is_dir() or (folder / IDENTITY_FILE).exists():
        return
    is_of_older_release = (folder / PROPERTIES_FILE).exists() and (
        folder / DATA_DIRECTORY / META_PROPERTIES_FILE
    ).exists()
    foreign = sorted(one.name for one in folder.iterdir() if one.name not in NO_DATA)
    if foreign and not is_of_older_release:
        more = ", ..." if len(foreign) > NAMED_COUNT_MAX else ""
        raise ForeignFolderError(
            f"the directory has no {IDENTITY_FILE}, but other files "
            f"({', '.join(foreign[:NAMED_COUNT_MAX])}{more})"
        )


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
