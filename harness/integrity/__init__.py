"""Rules that a correct result must also keep. Each has a name, and its evidence goes into the record."""
