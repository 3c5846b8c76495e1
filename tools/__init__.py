"""Faces of the advisor for hosts: MCP tools, JSON endpoints, command line."""
