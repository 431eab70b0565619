"""Tests talk to servers of this machine, and to no others: a proxy that the environment names is not for them."""

import os

os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"
