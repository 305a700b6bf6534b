"""Budget scheduling over the logs of runs: what policies would have saved, and what they would have lost."""
