"""What the processes of a launcher do for it: `multiprocessing.errors.record`."""
