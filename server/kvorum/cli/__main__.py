"""``python -m kvorum.cli``."""

import sys

from kvorum.cli import main

sys.exit(main())
