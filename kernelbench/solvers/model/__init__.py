"""The model as a solver sees it: answers, the code in them, tool calls."""
