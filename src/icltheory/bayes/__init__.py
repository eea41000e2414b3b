"""Bayes estimators: what the best predictor does that knows the tasks, or the law from which they come."""

from icltheory.bayes.discrete_estimator import discrete, posterior
from icltheory.bayes.laws import Law, LinearGaussian, Logistic
from icltheory.bayes.mixture_posterior import MixturePosterior, mixture
from icltheory.bayes.mixture_risk import BayesRisk, MixturePrompts, bayes_risk, draw_mixture
from icltheory.bayes.ridge_estimator import ridge

__all__ = [
    "BayesRisk",
    "Law",
    "LinearGaussian",
    "Logistic",
    "MixturePosterior",
    "MixturePrompts",
    "bayes_risk",
    "discrete",
    "draw_mixture",
    "mixture",
    "posterior",
    "ridge",
]
