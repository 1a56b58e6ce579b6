"""Which strategies keep wholes, and which divide within groups: names that libraries use."""

from .api import ShardingStrategy

__all__ = ["HYBRID_SHARDING_STRATEGIES", "NO_RESHARD_AFTER_FORWARD_STRATEGIES"]

HYBRID_SHARDING_STRATEGIES = [ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2]
NO_RESHARD_AFTER_FORWARD_STRATEGIES = (ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy._HYBRID_SHARD_ZERO2)
