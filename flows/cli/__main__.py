"""``python -m flows.cli``: the same as `goldilocks`."""

from flows.cli.entry import main

main()
