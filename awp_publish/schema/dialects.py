"""The dialect in which schemas are read: 2020-12."""

from awp_publish.model import JsonObject
from awp_publish.schema.reading import DIALECT
from awp_publish.schema.unusable import UnusableSchema
from awp_publish.schema.wording import shown


def check_dialect(schema: JsonObject) -> None:
    """Raise UnusableSchema for a schema that declares another dialect than 2020-12."""
    dialect = schema.get("$schema", DIALECT)
    if not isinstance(dialect, str) or dialect.removesuffix("#") != DIALECT:
        raise UnusableSchema(
            f"the schema is written in another dialect ($schema {shown(dialect)}); schemas are read as {DIALECT}, "
            "so leave $schema out or translate the schema"
        )
