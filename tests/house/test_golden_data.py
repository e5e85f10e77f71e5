"""The golden data is there, whole, and readable by every test that asks for it."""

import json
from pathlib import Path

from tests.support.golden_data import dump_text, metadata_directories, read_json_lines


def test_every_set_of_the_inventory_is_unpacked(golden: Path, golden_sets: Path) -> None:
    inventory = json.loads((golden / "inventory.json").read_text())
    assert {entry.name for entry in golden_sets.iterdir()} == set(inventory) - {"all"}


def test_each_segment_and_snapshot_has_the_text_real_kafka_printed(golden_sets: Path) -> None:
    directories = metadata_directories(golden_sets)
    assert len(directories) >= 9
    dumped = [
        file
        for directory in directories
        for file in [*directory.glob("*.log"), *directory.glob("*.checkpoint")]
        if dump_text(file, decoded=True).exists()
    ]
    assert len(dumped) >= 20
    for file in dumped:
        assert dump_text(file, decoded=True).read_text().startswith(f"Dumping {file.name}\n")


def test_corpus_holds_every_pair_of_message_and_version(golden: Path) -> None:
    pairs = {
        (line["message"], line["version"])
        for line in read_json_lines(golden / "codec-corpus.jsonl.gz")
    }
    assert len(pairs) == 744
