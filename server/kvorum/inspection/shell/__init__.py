"""The metadata shell: an image as a tree of nodes, and commands that walk it.

Its counterpart is Kafka's package org.apache.kafka.shell. All but `quorum`, which reads from
controllers, is a function of its arguments.
"""
