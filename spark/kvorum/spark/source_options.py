"""The options that the sources of files have in common, checked: one clear line for each wrong."""

import json
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

from kvorum.log_files.find import Identity, Search
from kvorum.log_files.ranges import MAX_PARTITION_BYTES
from kvorum.spark.damage_modes import Mode, parse_mode
from kvorum.spark.errors import OptionError

FILE_SYSTEM_PREFIX: Final = "fs."
FILE_OPTIONS: Final = (
    *("path", "paths", "columns", "mode", "maxPartitionBytes"),
    *("cluster.id", "node.id"),
)
"""The options of every source of files, besides those of the file system."""
PUSH_FILTERS: Final = "pushFilters"
"""The option of sources that use a query's conditions to skip work."""
_PROPERTIES_OF_TABLES: Final = frozenset({"owner", "provider"})
_BOOLEANS: Final[Mapping[str, bool]] = MappingProxyType({"true": True, "false": False})


class FileOptions(NamedTuple):
    """Which files are read, and how."""

    paths: tuple[str, ...]
    mode: Mode
    range_bytes: int
    search: Search


def given_options(options: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """Return the options by their names in lower case: names count in any case, as in Spark.

    Raises `OptionError` for a name that is not among `known`, and for a table of Spark's catalog:
    its columns are asked for with the table's properties, but its rows without any option.
    """
    given = {name.lower(): value for name, value in options.items()}
    listed = tuple(known)
    names = {name.lower() for name in listed}
    if given.keys() >= _PROPERTIES_OF_TABLES:
        raise OptionError(
            "Spark gives the options of a table to no source that is written in Python: make a "
            "view with CREATE TEMPORARY VIEW ... USING ... OPTIONS (...)"
        )
    for name in given:
        if name not in names and not name.startswith(FILE_SYSTEM_PREFIX):
            raise OptionError(
                f"no option {name!r}: there are {', '.join(listed)}, and {FILE_SYSTEM_PREFIX}* "
                "for the file system"
            )
    return given


def file_options(options: Mapping[str, str], search: Search) -> FileOptions:
    """Return which files are read, and how; `OptionError` for a wrong value.

    `search` is what is searched for, without what the options add to it.
    """
    given = {name.lower(): value for name, value in options.items()}
    file_system = {
        name.removeprefix(FILE_SYSTEM_PREFIX): _json_or_text(value)
        for name, value in options.items()
        if name.lower().startswith(FILE_SYSTEM_PREFIX)
    }
    identity = Identity(given.get("cluster.id"), number_option(given, "node.id", lowest=0))
    return FileOptions(
        paths=_paths(given),
        mode=parse_mode(given.get("mode", Mode.FAILFAST.value)),
        range_bytes=number_option(given, "maxPartitionBytes", lowest=1) or MAX_PARTITION_BYTES,
        search=search._replace(default_identity=identity, file_system_options=file_system),
    )


def column_names(given: Mapping[str, str]) -> list[str] | None:
    """Return the names in the option `columns`; None without it."""
    if "columns" not in given:
        return None
    return [name.strip() for name in given["columns"].split(",") if name.strip()]


def known_names(names: Iterable[str], known: Collection[str], described: str) -> tuple[str, ...]:
    """Return the names of columns; `OptionError` for an unknown or repeated one, or for none.

    `described` is what the error about an unknown name says that there is.
    """
    found = tuple(names)
    for index, name in enumerate(found):
        if name not in known:
            raise OptionError(f"no column {name!r}: there are {described}")
        if name in found[:index]:
            raise OptionError(f"column {name!r} is named twice")
    if not found:
        raise OptionError("no columns are named")
    return found


def boolean(given: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false, and false without it."""
    text = given.get(name.lower(), "false")
    value = _BOOLEANS.get(text.strip().lower())
    if value is None:
        raise OptionError(f"option {name!r} is {text!r}: it is true or false")
    return value


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    paths = [path for path in (given.get("path"),) if path]
    listed = given.get("paths", "").strip()
    if listed.startswith("["):
        paths += _json_texts(listed)
    else:
        paths += [path.strip() for path in listed.split(",") if path.strip()]
    if not paths:
        raise OptionError(
            "option 'path' is missing: name a file or a directory of a log, or several "
            "in option 'paths'"
        )
    return tuple(dict.fromkeys(paths))


def _json_texts(listed: str) -> list[str]:
    try:
        found = json.loads(listed)
    except ValueError as error:
        raise OptionError(f"option 'paths' is no JSON list: {error}") from None
    values = cast("list[object]", found)
    if not all(isinstance(value, str) and value for value in values):
        raise OptionError("option 'paths' is a list with something else than paths in it")
    return [str(value) for value in values]


def number_option(given: Mapping[str, str], name: str, *, lowest: int) -> int | None:
    """Return an option that is a number of at least `lowest`; None where it is not given.

    The names in `given` are in lower case. Raises `OptionError`.
    """
    text = given.get(name.lower())
    if text is None:
        return None
    try:
        number = int(text)
    except ValueError:
        raise OptionError(f"option {name!r} is {text!r}: it is a number") from None
    if number < lowest:
        raise OptionError(f"option {name!r} is {number}: it is {lowest} at least")
    return number


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value
