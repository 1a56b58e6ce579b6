"""The older home of fully_shard."""
