"""Measures from elsewhere."""

from testifai.quality import resolve


class Given:
    sample = 7

    def describe(self):
        return {"use": "given"}

    def reference(self, clean, model, *, seed):
        return clean, model, seed


class Rich(Given):
    name, higher_is_better, uses_model, share, clean_share = "rich", False, True, 0.25, 0.5


def test_an_object_with_its_methods_gets_the_rest():
    measure = resolve(Given())
    assert (measure.name, measure.higher_is_better, measure.sample, measure.uses_model) == ("Given", True, 7, False)
    assert (measure.share, measure.clean_share) == (1, 1)
    assert measure.describe() == {"use": "given"}
    assert measure.reference(["a"], None, seed=3) == (["a"], None, 3)


def test_what_it_has_of_its_own_is_used():
    measure = resolve(Rich())
    assert (measure.name, measure.higher_is_better, measure.uses_model) == ("rich", False, True)
    assert (measure.share, measure.clean_share) == (0.25, 0.5)
