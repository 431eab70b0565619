"""One gate a file: what may refuse or answer a call before its handler."""
