"""The version of kvorum: this module is the only place that states it.

The build reads it from here, and a node sends it to the nodes that it connects to. To read the
version of the installed package instead would cost a node some 20 ms at every start.
"""

from typing import Final

VERSION: Final = "0.2.0.dev0"
