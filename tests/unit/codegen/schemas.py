"""Small schemas for the tests of the generator."""

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from kvorum.codegen.emit_module import emit_module
from kvorum.codegen.model import MessageSpec
from kvorum.codegen.parse import parse_message


def schema(*fields: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return the schema of a data message with the given fields."""
    return {
        "name": "Probe",
        "type": "data",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": list(fields),
        **changes,
    }


def field(kind: str, versions: str = "0+", name: str = "It", **facts: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "versions": versions, **facts}


def spec_of(*fields: dict[str, Any], **changes: Any) -> MessageSpec:
    return parse_message(schema(*fields, **changes))


def class_of(folder: Path, *fields: dict[str, Any], **changes: Any) -> Any:
    """Generate the module of one schema, import it and return the message's class.

    No checker can know its fields, as it is made while the test runs.
    """
    spec = spec_of(*fields, **changes)
    file = folder / "probe_module.py"
    file.write_text(emit_module([spec]), encoding="utf-8")
    found = importlib.util.spec_from_file_location("probe_module", file)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules["probe_module"] = module
    found.loader.exec_module(module)
    return module.Probe


def write_folder(folder: Path, *schemas: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for each in schemas:
        (folder / f"{each['name']}.json").write_text(json.dumps(each), encoding="utf-8")
    codes = [{"name": "NONE", "code": 0, "message": None}]
    (folder / "ErrorCodes.json").write_text(json.dumps(codes), encoding="utf-8")
    return folder
