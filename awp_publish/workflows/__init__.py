"""What workflows of an actions.json are made of: expressions, primitives, identifiers and bounds. No I/O."""
