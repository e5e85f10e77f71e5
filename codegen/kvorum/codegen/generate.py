"""The generation of all files from all schemas, to write them or to compare them."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from kvorum.codegen.emit_catalog import emit_api_keys, emit_api_table, emit_error_codes
from kvorum.codegen.emit_module import emit_module
from kvorum.codegen.model import MessageSpec, module_name
from kvorum.codegen.parse import read_schemas
from kvorum.codegen.sync import ERROR_CODES_FILE, read_error_codes

PACKAGE = Path("messages")
OWN_PACKAGE = Path("own_messages")
OWN_SCHEMAS = Path("kvorum")
"""The folder of our own schemas below Kafka's, which `sync` does not touch and no table lists."""
API_KEYS = Path("api_keys.py")
API_TABLE = Path("api_table.py")
ERROR_CODES = Path("error_codes.py")


def generated_files(schemas: Path) -> dict[Path, str]:
    """Return every generated file, by its path below the wire package."""
    specs = read_schemas(schemas)
    files = _modules(PACKAGE, specs)
    files[PACKAGE / "__init__.py"] = (
        '"""Every message of Kafka, one module an API or record; import what is needed."""\n'
    )
    if (schemas / OWN_SCHEMAS).is_dir():
        files |= _modules(OWN_PACKAGE, read_schemas(schemas / OWN_SCHEMAS))
        files[OWN_PACKAGE / "__init__.py"] = (
            '"""Messages that are kvorum\'s own, not Kafka\'s."""\n'
        )
    files[API_KEYS] = emit_api_keys(specs)
    files[API_TABLE] = emit_api_table(specs, _metadata_records(schemas))
    files[ERROR_CODES] = emit_error_codes(read_error_codes(schemas))
    return files


def _modules(package: Path, specs: Iterable[MessageSpec]) -> dict[Path, str]:
    """Return the modules of messages, by their path; request and response share one."""
    modules: defaultdict[str, list[MessageSpec]] = defaultdict(list)
    for spec in specs:
        if spec.versions:
            modules[module_name(spec)].append(spec)
    return {package / f"{name}.py": emit_module(found) for name, found in sorted(modules.items())}


def _metadata_records(schemas: Path) -> frozenset[str]:
    """Return the names of the records of the cluster metadata log."""
    return frozenset(
        file.stem
        for file in schemas.glob("*.json")
        if file.name != ERROR_CODES_FILE
        and json.loads(file.read_text(encoding="utf-8")).get("log") == "cluster-metadata"
    )


def write(files: dict[Path, str], folder: Path) -> None:
    """Write the files below `folder`, and remove modules of messages without a schema."""
    for stale in _modules_on_disk(folder):
        if stale.relative_to(folder) not in files:
            stale.unlink()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def differences(files: dict[Path, str], folder: Path) -> list[str]:
    """Return the files on disk that differ from the generated ones."""
    found = [
        f"{path} differs"
        for path, text in files.items()
        if not (folder / path).is_file() or (folder / path).read_text(encoding="utf-8") != text
    ]
    return found + [
        f"{path.relative_to(folder)} has no schema"
        for path in _modules_on_disk(folder)
        if path.relative_to(folder) not in files
    ]


def _modules_on_disk(folder: Path) -> Iterator[Path]:
    for package in (PACKAGE, OWN_PACKAGE):
        yield from sorted((folder / package).glob("*.py"))
