"""What can be measured of a node, by Kafka's names, and the HTTP listener that tells it.

`sensors` collect what happens between two looks, `catalogue` lists what there is, `readings` and
its neighbours take values off a running node, `exposition` writes them as Prometheus reads them.
Only the last imports the Prometheus client, and only where a listener is configured.
"""
