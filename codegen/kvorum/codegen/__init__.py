"""Message schemas in, Python source out. Never imported at run time."""
