"""Compile a generated header, call the library, and compute what it should return."""
