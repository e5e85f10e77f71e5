"""Commands without the package of an extra: one line with its use, its name and the extra."""

import sys

import pytest

from kvorum.cli import FAILED, main
from kvorum.cli.missing_package import missing_package_text


def test_bytes_are_not_explained_without_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [*sys.modules]:
        if name.startswith(("kvorum.inspection.explain", "kvorum.inspection.layouts", "construct")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "construct", None)
    assert main(["log", "check", "--explain", "file@0"]) == FAILED
    assert capsys.readouterr().err == (
        "kvorum log: --explain needs the package construct: install kvorum with its extra 'tools'\n"
    )


def test_the_package_is_named_and_not_its_module() -> None:
    error = ModuleNotFoundError("No module named 'pyiceberg'", name="pyiceberg.manifest")
    assert missing_package_text("--format iceberg", error, extra="iceberg") == (
        "--format iceberg needs the package pyiceberg: install kvorum with its extra 'iceberg'"
    )


def test_a_package_that_is_broken_is_named_with_the_reason() -> None:
    error = ImportError("libjvm.so: cannot open shared object file")
    assert missing_package_text("the job", error, extra="spark") == (
        "the job needs a package that cannot be imported: libjvm.so: cannot open shared object "
        "file: install kvorum with its extra 'spark'"
    )
