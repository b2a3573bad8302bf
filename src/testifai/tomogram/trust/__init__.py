"""How far to trust a tomogram: its predictions compared with measurements that were kept from its surrogate."""

from testifai.tomogram.trust.assessment import assess, keep, recall
from testifai.tomogram.trust.statements import HeldBack, HighOrders, LeftOut, OffSurface, Trust

__all__ = ["HeldBack", "HighOrders", "LeftOut", "OffSurface", "Trust", "assess", "keep", "recall"]
