"""The cleaner's map of keys: a dictionary of the last offsets, in a fixed amount of memory."""

from random import Random

import pytest

from kvorum.storage.cleaner.offset_map import SLOT_BYTES, OffsetMap


@pytest.mark.parametrize("load_factor", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("slot_count", [3, 10, 500])
def test_it_holds_what_a_dictionary_holds(slot_count: int, load_factor: float) -> None:
    random = Random(slot_count)
    found = OffsetMap(size_bytes=slot_count * SLOT_BYTES + 23, load_factor=load_factor)
    wanted: dict[bytes, int] = {}
    for offset in range(4 * slot_count):
        key = b"%d" % random.randrange(2 * slot_count)
        assert found.get(key) == wanted.get(key, -1)
        if not found.is_full:
            found.put(key, offset)
            wanted[key] = found.latest_offset
            assert found.latest_offset == offset
    assert len(found) == len(wanted) == int(slot_count * load_factor)
    assert {key: found.get(key) for key in wanted} == wanted
    assert found.get(b"another") == -1
    found.clear()
    assert (len(found), found.latest_offset, found.get(b"1")) == (0, -1, -1)


def test_offset_0_is_an_offset() -> None:
    found = OffsetMap(size_bytes=240, load_factor=0.9)
    found.put(b"", 0)
    assert found.get(b"") == 0


def test_no_slot_is_used_twice() -> None:
    found = OffsetMap(size_bytes=2 * SLOT_BYTES, load_factor=1.0)
    found.put(b"a", 1)
    found.put(b"b", 2)
    with pytest.raises(ValueError, match="all 2 slots"):
        found.put(b"c", 3)


def test_a_map_of_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="do not take one key"):
        OffsetMap(size_bytes=SLOT_BYTES, load_factor=0.9)
