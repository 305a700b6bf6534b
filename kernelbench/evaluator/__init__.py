"""An evaluator that stays warm between calls, in a process beside the caller."""
