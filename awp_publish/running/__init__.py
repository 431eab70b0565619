"""The runner of actions.json maps: tools, workflows, projections, checks upon one page, in process or in a browser."""
