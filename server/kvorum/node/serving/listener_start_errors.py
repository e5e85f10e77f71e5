"""A reason why a node does not start: a listener whose security cannot be used."""

from collections.abc import Generator
from contextlib import contextmanager

from kvorum.node.errors import NodeStartError


@contextmanager
def listener_start_errors(
    listener: str, *, uses: str, needs: str, invalid: tuple[type[Exception], ...]
) -> Generator[None]:
    """Turn `invalid` settings, and a package that is not installed, into a NodeStartError.

    `uses` is the mechanism or protocol, which `needs` the package.
    """
    try:
        yield
    except ImportError as error:
        raise NodeStartError(
            f"Listener {listener} uses {uses}, for which kvorum needs the package {needs}: "
            "install kvorum with its extra 'security'"
        ) from error
    except invalid as error:
        raise NodeStartError(f"Listener {listener} cannot use {uses}: {error}") from error
