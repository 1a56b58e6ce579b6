"""Names of the frame evaluator that libraries import: there is none."""

from cresset._dynamo import OptimizedModule, is_dynamo_supported  # noqa: F401
