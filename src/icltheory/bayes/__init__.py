"""Bayes estimators: what the best predictor does that knows the tasks, or the law from which they come."""

from icltheory.bayes.discrete_estimator import discrete, posterior
from icltheory.bayes.ridge_estimator import ridge

__all__ = ["discrete", "posterior", "ridge"]
