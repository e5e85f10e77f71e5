"""The metrics of a node, by Kafka's names: how they are collected, listed and exported.

`sensors` collects values between two scrapes, `catalogue` lists the metrics, `exposition` writes
values in the format of Prometheus. Only the last imports the Prometheus client, and only if a
listener is configured. `kvorum.node.monitoring` reads the values from a running node.
"""
