"""A fleet of clusters' metadata logs, made up as clusters would have written them."""
