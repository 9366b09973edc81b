"""``python -m datassay`` is ``datassay``."""

from datassay.cli import main

if __name__ == "__main__":
    main()
