"""Numbers in options that are too small or too large: refused with the command's usage."""

import pytest

from kvorum.cli import WRONG_USAGE, main

HUGE = 10**30
REFUSED = {
    "simulate --seed": (-1, HUGE),
    "simulate --seeds": (0, -3, HUGE),
    "simulate --jobs": (0, -1, HUGE),
    "simulate --duration": (0, -1, HUGE),
    "check-history orders.jsonl --cases": (-1, HUGE),
    "dev --port": (-1, HUGE),
    "log image logs --at": (-1,),
    "log diff logs --from": (-1,),
    "log why orders": (-1,),
}


@pytest.mark.parametrize(
    ("words", "number"), [(words, number) for words in REFUSED for number in REFUSED[words]]
)
def test_a_number_out_of_bounds_is_refused_with_the_usage(
    words: str, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words.split(), str(number)]) == WRONG_USAGE
    printed = capsys.readouterr()
    assert printed.out == ""
    usage, *_, problem = printed.err.splitlines()
    assert usage.startswith("usage: kvorum ")
    assert f"{number}" in problem


def test_the_message_has_the_bounds_of_the_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--jobs", "0"]) == WRONG_USAGE
    assert capsys.readouterr().err.endswith(
        "kvorum simulate: error: argument --jobs: 0 is not a number from 1 to 1024\n"
    )
