"""`python -m kernelbench` is `kb`."""

from kernelbench.cli import main

if __name__ == "__main__":
    main(prog_name="kb")
