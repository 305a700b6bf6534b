"""The evaluation service: candidates in over HTTP, results out, for many clients and over restarts."""
