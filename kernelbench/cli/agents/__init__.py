"""Commands that serve coding agents, trainers and other programs."""
