"""Speed of light: how fast could a problem be, and what can no honest kernel beat.

Read in this order: ``operators`` traces a workload's reference without data,
``flops`` counts what each operator computes, ``facts`` and ``demand`` find what
need not be computed or read, ``hardware`` holds the limits of devices,
``bounds`` makes the two bounds of them, ``report`` writes them down.
"""
