"""The agent of a machine: it keeps the machine's ranks running. See `server`."""
