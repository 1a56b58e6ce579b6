"""Which version's way of flattening dictionaries save follows: None is today's, "2_3" that of PyTorch 2.3 and earlier."""

_act_like_version = None
