"""Views of the results log: tables, comparisons and plots."""
