"""Tools of a coding agent, as functions with JSON in and out, and the server that offers them over MCP."""
