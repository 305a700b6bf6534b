"""The CI gate: thresholds on results, and how CI shows what they say."""
