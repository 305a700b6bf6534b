"""Log that a run of solvers keeps, so that a killed run goes on as if nothing had happened."""
