"""The same measurements, asked from Python: nothing is measured twice."""


def test_zoom_alone_costs_less_than_zoom_and_blur(testifai):
    tomogram = testifai("digits.testifai.toml")
    zoom = tomogram.query("zoom > 0 and blur == 0 and brightness == 0")
    both = tomogram.query("zoom > 0 and blur > 0 and brightness == 0")
    assert zoom.low > both.high
