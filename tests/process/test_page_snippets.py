"""Commands of the pages, pasted and run as they stand but for the numbers of seeds and versions."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.page_blocks import page_block, typed
from tests.support.pasted_shell import run_pasted
from tests.support.source_tree import ROOT
from tests.support.waiting import PATIENCE_S

SIMULATION_PATIENCE_S = 10 * PATIENCE_S
"""The patience for some simulated worlds, of which each takes seconds of processor time."""
SEED = "4711"
PAGES_VERSION = "0.2.0"
NEXT_VERSION = "99.0.0"
"""A version that this tree can always become."""


def quick(commands: str) -> str:
    """Return simulations of one seed each in place of many, the second world of one that is known.

    The number of seeds decides how long a command takes, and nothing else.
    """
    of_one = re.sub(r"--seeds \d+", "--seeds 1", commands)
    return of_one.replace("--only brokers", f"--only brokers --seed {SEED}")


@pytest.mark.slow
def test_the_simulations_of_the_pages(tmp_path: Path) -> None:
    commands = quick(
        typed(page_block("README.md", "console", "kvorum simulate"))
        + typed(page_block("docs/verification.md", "console", "kvorum simulate"))
    )
    printed = run_pasted(commands, tmp_path, patience_s=SIMULATION_PATIENCE_S)
    assert printed.count("1 seeds, 0 failed") == 4
    assert printed.count("1 seeds of brokers, 0 failed") == 5
    assert printed.count(f"seed {SEED}\n") == 5
    assert (tmp_path / "t").stat().st_size > 0


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="only a clone can be cloned")
def test_a_release_is_cut_as_the_page_says(tmp_path: Path) -> None:
    clone = tmp_path / "kvorum"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    (clone / ".venv").symlink_to(sys.prefix)
    command = typed(page_block("docs/releasing.md", "console", "tools.cut_release"))
    assert PAGES_VERSION in command
    printed = run_pasted(command.replace(PAGES_VERSION, NEXT_VERSION), clone)
    assert printed.startswith(f"kvorum {NEXT_VERSION}: look at the changes with git diff")
    assert f"\n## {NEXT_VERSION} (" in (clone / "CHANGELOG.md").read_text("utf-8")
