"""What a broker answers from its copy of the metadata, without asking the controller."""
