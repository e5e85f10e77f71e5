"""Kafka's files as declared layouts: documentation that can be run (with the library construct).

These declarations are a second opinion. They share no code with the codecs of `kvorum.wire` and
`kvorum.storage`, which are made for speed; tests hold each against the other. `kinds` has the
layout of each file by its name, `reading` walks a file and names the bytes of every field.
"""
