"""Prompts: tasks, and exact draws of all that linear attention sees of a context."""

from icltheory.prompts.sampling import Summaries, sample_summaries
from icltheory.prompts.tasks import TaskMoments, draw_tasks, moments_of_law, moments_of_tasks

__all__ = ["Summaries", "TaskMoments", "draw_tasks", "moments_of_law", "moments_of_tasks", "sample_summaries"]
