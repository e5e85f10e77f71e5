"""Histories: what clients have seen of a cluster, and the anomalies that are in it.

A cluster is judged by the operations of its clients alone, whatever it runs on. `reader` takes the
lines of a history, `check` looks for anomalies, `anomalies` lists them. docs/histories.md has the
form of a line, and says of each anomaly when it is legal.
"""
