"""OpenAPI documents, for adapters of frameworks that write one: their operations as inputs, outputs and places."""
