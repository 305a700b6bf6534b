"""Text for models: prompts from files, feedback on results, facts about GPUs."""
