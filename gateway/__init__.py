"""The service over HTTP, MCP, mem0's shape and pages. Imports the client and the schemas only."""
