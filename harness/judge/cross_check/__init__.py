"""The judge's own clock against the times that the candidate's process reports."""
