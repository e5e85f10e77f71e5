"""Flags that bin/kafka-run-class.sh of the release passes to Java; a script adds its heap."""

from __future__ import annotations

from typing import Final

RUN_CLASS_FLAGS: Final = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)
