"""What ShinkaEvolve starts for each program; see shinka_search.py."""

import os

from kernelbench.integrations.shinka import main

main(os.environ.get("PROBLEM", "1/19"))
