import pytest
from scipy.stats import norm

from testifai.errors import InputError
from testifai.statistics.intervals import half_widths, quantile


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_an_interval_holds_what_it_says(confidence):
    assert norm.cdf(half_widths(confidence)) - norm.cdf(-half_widths(confidence)) == pytest.approx(confidence)
    assert quantile(confidence) == pytest.approx(norm.ppf(confidence))


@pytest.mark.parametrize("confidence", [0, 1, 95, float("nan"), "much"])
def test_what_is_no_confidence_is_refused(confidence):
    with pytest.raises(InputError, match="confidence: must be a number, above 0 and below 1, got"):
        half_widths(confidence)
