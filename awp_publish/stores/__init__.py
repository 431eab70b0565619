"""Where calls are remembered: memory, SQLite, Redis behind one small protocol."""
