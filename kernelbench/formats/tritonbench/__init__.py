"""TritonBench-G: a checkout as a suite of problems, and answers to it as solutions."""
