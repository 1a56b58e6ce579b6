"""Rounds of machines that come and go."""

import threading
import time
from datetime import timedelta

import cresset.distributed as dist
from cresset.distributed.elastic.rendezvous.c10d_rendezvous_backend import C10dRendezvousBackend
from cresset.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler, RendezvousTimeout


def test_a_machine_that_was_not_heard_of_joins_again():
    """It was too busy to say that it lives, another took it out and works alone: both come together again."""
    store = dist.HashStore()

    def machine():
        timeout = RendezvousTimeout(join=timedelta(seconds=30), last_call=timedelta(seconds=1))
        return DynamicRendezvousHandler.from_backend(
            "job", store, C10dRendezvousBackend(store, "job"), 1, 2, "localhost", timeout, keep_alive_interval=0.5
        )

    busy, other = machine(), machine()
    try:
        assert busy.next_rendezvous().world_size == 1
        assert busy.num_nodes_waiting() == 0
        busy._keep_alive_timer.cancel()
        time.sleep(2)
        assert other.next_rendezvous().world_size == 1
        time.sleep(1.1)  # a copy of the state is used for a second
        assert (busy.num_nodes_waiting(), other.num_nodes_waiting()) == (1, 0)
        sizes = []
        joins = threading.Thread(target=lambda: sizes.append(busy.next_rendezvous().world_size))
        joins.start()
        end = time.monotonic() + 20
        while other.num_nodes_waiting() == 0 and time.monotonic() < end:
            time.sleep(0.1)
        sizes.append(other.next_rendezvous().world_size)
        joins.join()
        assert sizes == [2, 2]
        assert busy.num_nodes_waiting() == other.num_nodes_waiting() == 0
    finally:
        busy.shutdown(), other.shutdown()
