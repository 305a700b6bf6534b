"""The untrusted side: the only code that ever shares a process with a candidate.

It holds no reference output, no verdict and no results file, and whatever it
says is only a claim that the judge checks.
"""
