"""The release of Kafka that everything here is compared with."""

from typing import Final

REFERENCE_RELEASE: Final = "4.4.0"
