"""Results in a browser: one page that opens from disk (``page``), or follows a run (``server``)."""
