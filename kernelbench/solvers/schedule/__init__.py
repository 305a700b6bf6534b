"""Order of work across problems: schedules, limits of the whole run, and the dispatcher that asks them."""
