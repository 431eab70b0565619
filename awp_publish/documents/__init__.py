"""What documents are made of, and those that every site has: pure renderers, catalog in, bytes out."""
