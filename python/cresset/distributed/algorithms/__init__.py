"""How gradients travel: `ddp_comm_hooks`."""
