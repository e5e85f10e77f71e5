"""The group coordinator of a broker: requests for the shards of `kvorum.groups`.

`GroupCoordinatorService` has a method for each request. It hands operations to the coordinators of
groups, which `kvorum.node.broker.coordinator` drives.
"""
