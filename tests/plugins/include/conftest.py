"""The front door by which declarations are tested."""

from tests.declare.conftest import refusal as refusal, site as site, start as start
