"""What a coding agent may ask for, as functions with JSON in and out, and the server that offers them over MCP."""
