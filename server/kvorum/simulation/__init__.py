"""A simulated quorum: the real core, driver and storage on a simulated network, disk and clock."""
