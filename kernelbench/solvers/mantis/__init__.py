"""MANTIS: Measure, Analyze, Nominate, Triage, Implement, Summarize, guided by the speed of light.

One module a phase. A phase takes what the phases before it found, and leaves an artefact: ``N_phase.json`` and
``N_phase.md`` in ``artefacts/LEVEL_NUMBER/iteration_I/`` of the run. ``controllers`` has the three forms: flat (MI),
in-prompt and orchestrated.

References
----------
The paper on muCUTLASS and speed-of-light guidance, sections 4.2 and 5.5, tables 2 to 4.
"""
