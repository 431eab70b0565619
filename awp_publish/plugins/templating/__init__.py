"""HTML made from the declarations: attributes that agents look for, and links to the documents.

Everything is read from the catalog, so that page and manifest cannot disagree, and an undeclared name is an error. The
functions return plain text that is already escaped; `install` registers them with Jinja as markup.
"""

from awp_publish.plugins.templating.attributes import (
    action_attributes as action_attributes,
    context_attributes as context_attributes,
    param_attributes as param_attributes,
    result_attributes as result_attributes,
)
from awp_publish.plugins.templating.catalog import AWAS as AWAS, Style as Style
from awp_publish.plugins.templating.jinja import install as install
from awp_publish.plugins.templating.links import (
    agents_script as agents_script,
    head_links as head_links,
    robots_lines as robots_lines,
    webmcp_hash as webmcp_hash,
    webmcp_script as webmcp_script,
)
from awp_publish.plugins.templating.metadata import (
    address_pattern as address_pattern,
    find_page as find_page,
    page_meta as page_meta,
    structured_data as structured_data,
    structured_result as structured_result,
)
