"""FastAPI: routes, schemas and dependencies of its applications."""

from fastapi import FastAPI

from awp_publish.declare.discover.framework import WebFramework
from awp_publish_fastapi.injector import FastApiInjector
from awp_publish_fastapi.routes import in_order, openapi_of, walk_fastapi

FRAMEWORK = WebFramework(
    application=FastAPI, walk=walk_fastapi, in_order=in_order, openapi=openapi_of, injector=FastApiInjector
)
