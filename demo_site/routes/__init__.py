"""The pages of the shop, by topic: each module registers its handlers on one application."""
