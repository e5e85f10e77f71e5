"""The seeds of the generated scripts, and how many of them a run takes."""

from __future__ import annotations

import os
from typing import Final

QUICK_SCRIPTS: Final = 72


SCRIPTS: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SCRIPTS", QUICK_SCRIPTS))


FIRST_SEED: Final = int(os.environ.get("KVORUM_DIFFERENTIAL_SEED", "0"))
