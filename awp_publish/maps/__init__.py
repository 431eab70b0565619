"""The parts of workflows of an actions.json: expressions, primitives, identifiers and bounds. No I/O."""
