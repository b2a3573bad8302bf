"""The technique `balanced`: labels where failures are likely, with an interval that does not rely on it."""

from testifai.operational.balanced.balanced import FIRST_ROUND, BalancedSampling, deal_out

__all__ = ["FIRST_ROUND", "BalancedSampling", "deal_out"]
