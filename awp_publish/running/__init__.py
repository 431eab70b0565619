"""The runtime of actions.json: tools, workflows, projections and checks on one page, in process or in a browser."""
