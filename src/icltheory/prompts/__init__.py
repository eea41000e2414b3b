"""Prompts: tasks, and exact draws of all that linear attention sees of a context."""

from icltheory.prompts import covariance
from icltheory.prompts.kernels import Kernel
from icltheory.prompts.pretraining import pretraining_tasks
from icltheory.prompts.regimes import Regime, Statistics
from icltheory.prompts.sampling import Summaries, sample_summaries
from icltheory.prompts.tasks import TaskMoments, draw_tasks, moments_of_law, moments_of_tasks
from icltheory.prompts.tokens import Prompts, stream_prompts, summarise

__all__ = [
    "Kernel",
    "Prompts",
    "Regime",
    "Statistics",
    "Summaries",
    "TaskMoments",
    "covariance",
    "draw_tasks",
    "moments_of_law",
    "moments_of_tasks",
    "pretraining_tasks",
    "sample_summaries",
    "stream_prompts",
    "summarise",
]
