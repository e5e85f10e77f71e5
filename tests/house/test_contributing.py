"""The snippets of CONTRIBUTING, run as they stand: a new API, and a configuration key."""

import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
from tests.support.page_blocks import page_block

from kvorum.codegen.emit_module import emit_module
from kvorum.codegen.parse import parse_message
from kvorum.controller.api import ControllerApi
from kvorum.metadata.config_definitions import keys_of
from kvorum.metadata.config_definitions.settings import read_settings

WIDGETS: Final = "kvorum.wire.messages.alter_widgets"
WIDGETS_KEY: Final = 99
NEW_API: Final = page_block("CONTRIBUTING.md", "python", "AlterWidgets")
MOVE_BYTES: Final = "replica.move.max.bytes"


def schema(kind: str) -> dict[str, Any]:
    """Return the schema of a message of the API that the page makes up."""
    fields = [{"name": "ErrorCode", "type": "int16", "versions": "0+"}]
    return {
        "apiKey": WIDGETS_KEY,
        "type": kind,
        "name": f"AlterWidgets{kind.capitalize()}",
        "listeners": ["broker", "controller"],
        "validVersions": "0",
        "flexibleVersions": "0+",
        "fields": fields if kind == "response" else [],
    }


def names_of(code: str, folder: Path) -> dict[str, Any]:
    """Run a snippet as a module, and return its names."""
    file = folder / "pasted.py"
    file.write_text(code, encoding="utf-8")
    return runpy.run_path(str(file))


@pytest.fixture
def widget_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message module of that API, as `make generate` would write it."""
    specs = [parse_message(schema(kind)) for kind in ("request", "response")]
    module = ModuleType(WIDGETS)
    vars(module).update(names_of(emit_module(specs), tmp_path))
    monkeypatch.setitem(sys.modules, WIDGETS, module)


@pytest.mark.usefixtures("widget_messages")
def test_a_new_api_is_one_value(tmp_path: Path) -> None:
    names = names_of(NEW_API, tmp_path)
    api: Any = names["API"]
    assert api.request.API_KEY == WIDGETS_KEY
    assert api.decide is names["alter_widgets"]
    assert isinstance(api, ControllerApi)


@pytest.mark.usefixtures("widget_messages")
@pytest.mark.parametrize("given", ["permission=", "refuse="])
def test_a_new_api_needs_its_permission_and_its_refusal(given: str, tmp_path: Path) -> None:
    """The page says that the import raises TypeError without one of them."""
    lines = [line for line in NEW_API.splitlines() if not line.strip().startswith(given)]
    with pytest.raises(TypeError, match=given.removesuffix("=")):
        names_of("\n".join(lines), tmp_path)


def test_a_settings_class_is_read_from_the_key_that_its_field_names(tmp_path: Path) -> None:
    snippet = page_block("CONTRIBUTING.md", "python", "replica.move.max.bytes")
    settings = names_of(snippet, tmp_path)["ReplicationSettings"]
    assert keys_of(settings) == {MOVE_BYTES}
    values = {MOVE_BYTES: 1024}
    assert read_settings(settings, values.__getitem__).move_bytes_max == values[MOVE_BYTES]
