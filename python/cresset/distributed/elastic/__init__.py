"""Launching ranks that restart: agents of machines, how they find each other, the processes, timers, events and metrics."""
