"""Review by a model: an optional second reader of what the harness found correct.

Off unless somebody runs `kb review`; it sends sources of a run to the endpoint
that is named. Its answers are opinions beside the results, in a log of their
own (``reviews.jsonl``), and change no result.
"""
