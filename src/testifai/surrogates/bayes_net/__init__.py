"""The surrogate `bayes_net`: a Bayesian network over the severities."""

from testifai.surrogates.bayes_net.bayes_net import BayesNet

__all__ = ["BayesNet"]
