"""The gates, which may refuse or answer a call before its handler."""
