"""The check of the built site finds what would be loaded from elsewhere, and links that lead nowhere."""

from __future__ import annotations

import check_site
import pytest

FINE = '<link href="a.css" rel="stylesheet"><a href="b.html#here">b</a><a href="https://example.org">outside</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "index.html").write_text(FINE)
    (tmp_path / "b.html").write_text('<h1 id="here">B</h1><img src="data:image/png;base64,AA"><a href=".">up</a>')
    (tmp_path / "a.css").write_text("body { background: url(a.png) }")
    return tmp_path


def test_a_site_that_stands_alone(site):
    assert list(check_site.problems(site)) == []


@pytest.mark.parametrize(
    ("file", "more", "words"),
    [
        ("index.html", '<script src="https://unpkg.com/x"></script>', "index.html: loads https://unpkg.com/x"),
        ("index.html", '<link rel="preconnect" href="//fonts.gstatic.com">', "loads //fonts.gstatic.com"),
        ("index.html", '<img src="http://example.org/a.png">', "loads http://example.org/a.png"),
        ("index.html", '<pre class="mermaid"></pre>', "fetches a script"),
        ("index.html", '<a href="c.html">c</a>', "c.html leads nowhere"),
        ("index.html", '<a href="b.html#there">b</a>', "b.html#there leads nowhere"),
        ("a.css", "@import 'https://fonts.example/a.css';", "a.css: loads https://fonts.example/a.css"),
        ("a.css", "i { src: url(//fonts.example/a.woff2) }", "a.css: loads //fonts.example/a.woff2"),
    ],
)
def test_what_is_wrong_is_named(site, file, more, words):
    with (site / file).open("a") as page:
        page.write(more)
    (problem,) = check_site.problems(site)
    assert words in problem
    assert check_site.main(site) == 1


def test_a_site_that_is_not_there(tmp_path):
    assert check_site.main(tmp_path) == 1
