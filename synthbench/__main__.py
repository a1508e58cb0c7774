"""`python -m synthbench`: the command line."""

from synthbench.cli.main import main

if __name__ == "__main__":
    main()
