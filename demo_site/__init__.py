"""First Lines: a small bookshop, an ordinary web application that people and programs can both use."""
