"""From HTML to what an agent reads: a tree, the Semantic Object Model of the page, and Markdown. Pure: no I/O.

Needs the extra `pages`.
"""

from awp_publish.pages.selectolax import parse as parse
from awp_publish.pages.som import Budget as Budget, Som as Som, compile_som as compile_som
from awp_publish.pages.tree import Tree as Tree
