"""Profiles of a candidate inside its sandbox: facts for its author, and no judgement."""
