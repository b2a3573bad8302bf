"""How far to trust a tomogram: its predictions compared with measurements that were kept from its surrogate.

`assess` does so, which takes as long as a few fits; `keep` puts what it found into the run file, and `recall` takes it
from there for as long as it is true.
"""

from testifai.tomogram.trust.assessment import assess, keep, recall
from testifai.tomogram.trust.statements import HeldBack, HighOrders, LeftOut, OffSurface, Trust

__all__ = ["HeldBack", "HighOrders", "LeftOut", "OffSurface", "Trust", "assess", "keep", "recall"]
