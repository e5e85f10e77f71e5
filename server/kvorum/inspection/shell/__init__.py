"""The metadata shell: an image as a tree of nodes, and commands that walk it.

Its counterpart is Kafka's package org.apache.kafka.shell. All but `loading` and `quorum` is a
function of its arguments; those two read files and controllers.
"""
