"""What several test modules need."""

import pytest


@pytest.fixture
def torch():
    """Give PyTorch, on one thread: on a busy machine its threads wait for each other most of the time."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)
