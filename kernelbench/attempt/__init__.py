"""One judged file as one JSON object: what ``kb try --json`` prints and ``kb mcp`` returns."""
