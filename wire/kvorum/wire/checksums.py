"""CRC-32C, the checksum of batches and of small files, from the crc32c package.

The package looks up its own version when it is imported, and with it pulls in a mail parser: twenty
milliseconds of every start. So its compiled module is loaded by itself where it can be found.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Final, cast

_PACKAGE, _COMPILED = "crc32c", "_crc32c"
Checksum = Callable[..., int]


def _compiled_crc32c() -> Checksum | None:
    """Return the compiled function, None where the package does not hold it as expected."""
    package = PathFinder.find_spec(_PACKAGE)
    if package is None or package.submodule_search_locations is None:
        return None
    compiled = PathFinder.find_spec(_COMPILED, list(package.submodule_search_locations))
    if compiled is None or compiled.loader is None:
        return None
    module = module_from_spec(compiled)
    compiled.loader.exec_module(module)
    return cast("Checksum | None", getattr(module, _PACKAGE, None))


def _crc32c() -> Checksum:
    found = _compiled_crc32c()
    if found is not None:
        return found
    import crc32c as package  # noqa: PLC0415 - only where the shorter way is closed

    return package.crc32c


crc32c: Final[Checksum] = _crc32c()
"""Return the checksum of `data`, continued from a second argument if there is one."""
