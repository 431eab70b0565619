"""The published schema of a manifest, and the front door by which declarations are tested."""

from tests.declare.conftest import refusal as refusal, site as site, start as start
from tests.documents.conftest import matches_awas as matches_awas
