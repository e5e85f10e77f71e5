"""The import of a data source where the extra is not installed."""

import sys

import pytest

import kvorum.spark


@pytest.mark.parametrize("package", ["pyarrow", "pyspark"])
@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("KvorumMetadataSource", "kvorum.spark.metadata_source.source"),
        ("KvorumLogSource", "kvorum.spark.log_source.source"),
    ],
)
def test_a_data_source_names_the_extra_that_it_needs(
    name: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    for loaded in [*sys.modules]:
        if loaded.partition(".")[0] == package:
            monkeypatch.setitem(sys.modules, loaded, None)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as raised:
        getattr(kvorum.spark, name)
    assert str(raised.value) == (
        f"{name} needs the package {package}: install kvorum with its extra 'spark'"
    )


def test_another_name_is_not_an_attribute() -> None:
    assert not hasattr(kvorum.spark, "KvorumSource")
