"""The published MCP conformance scenarios, run against an application of ours (`make conformance`)."""
