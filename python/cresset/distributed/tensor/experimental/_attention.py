"""PyTorch's place for context_parallel."""

from ._context_parallel._attention import *  # noqa: F403
from ._context_parallel._attention import (  # noqa: F401
    _CausalBehavior, _context_parallel_shard, _ContextParallelOptions, _cp_options, _HeadTailLoadBalancer, _is_causal_behavior, _LoadBalancer, _RotateMethod,
)  # fmt: skip
