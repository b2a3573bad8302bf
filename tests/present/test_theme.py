"""Colours that stay apart for colour-blind readers and stand out on both grounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from testifai.present import theme

# Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009),
# severity 1, for linear RGB.
SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour):
    values = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(colour, sight):
    """CIE L*a*b*, in which equal distances look about equally large; 2.3 is just noticeable."""
    ratio = XYZ @ np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1) / np.array([0.95047, 1, 1.08883])
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one, other):
    """As the Web Content Accessibility Guidelines define it."""
    low, high = sorted(XYZ[1] @ linear(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("sight", SIGHT)
def test_robustness_colours_stay_apart(sight):
    colours = [lab(colour, sight) for _, colour in theme.SCALE]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2)) > 20


@pytest.mark.parametrize("sight", SIGHT)
def test_first_four_series_stay_apart(sight):
    colours = [lab(colour, sight) for colour in theme.SERIES[:4]]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(colours, 2)) > 15


def test_series_are_told_apart_without_colour():
    assert len(set(zip(theme.DASHES, theme.SYMBOLS, strict=True))) == len(theme.SERIES)


@pytest.mark.parametrize("page", [theme.LIGHT, theme.DARK])
def test_contrast(page):
    assert contrast(page.ink, page.ground) > 7
    for colour in (*theme.SERIES, theme.NEUTRAL):
        assert contrast(colour, page.ground) >= 3


def test_a_layout_can_be_dressed_again():
    axis = {"title": {"text": "severity"}, "range": [0, 1]}
    light, dark = (theme.figure([], "curve", dark=dark, xaxis=axis).to_dict()["layout"] for dark in (False, True))
    assert theme.dressed(light, dark=True) == dark
    assert theme.dressed(dark, dark=False) == light
    assert light["font"]["color"] != dark["font"]["color"]
    assert dark["xaxis"]["range"] == [0, 1]
    assert "scene" not in light


def test_unknown_is_said_to_be():
    assert theme.estimate_text(float("nan"), float("nan"), float("nan")) == "unknown"
    assert theme.estimate_text(0.5, float("nan"), float("nan")) == "0.500 (no interval)"
