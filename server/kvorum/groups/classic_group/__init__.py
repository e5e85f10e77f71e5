"""What a classic group is: members, states, generations, and its record."""
