"""Problems: find, load and validate modules, sample inputs from seeds, derive C signatures."""
