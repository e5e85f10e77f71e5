"""Recovery of a quorum whose majority is lost, from the directories of the survivors.

`survivor` reads a directory and changes nothing; `plan` states what of its log is kept and what may
be lost, and decides, or refuses; `writing` makes the planned changes, and leaves a file about them
in the directory.
"""
