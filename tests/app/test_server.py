"""Who gets an answer, how large a request may be, and what the callbacks return to anyone who asks."""

from __future__ import annotations

import json
import shutil

import pytest

pytest.importorskip("dash")

from testifai.app import callbacks, panels
from testifai.app.server import LARGEST_REQUEST, build, cookie_of, is_loopback, listen
from testifai.app.state import Runs
from testifai.errors import InputError


@pytest.fixture(scope="module")
def client(runs):
    return build(runs).server.test_client()


LATEST = ("revision", "data", 0)


def ask(client, output, inputs, state=(), changed=None):
    """Call a callback as the page does."""
    body = {
        "output": output,
        "outputs": [],
        "inputs": [{"id": i, "property": p, "value": v} for i, p, v in inputs],
        "state": [{"id": i, "property": p, "value": v} for i, p, v in state],
        "changedPropIds": [changed or f"{inputs[0][0]}.{inputs[0][1]}"],
    }
    single = not output.startswith("..")
    outputs = [
        {"id": part.rpartition(".")[0], "property": part.rpartition(".")[2]} for part in output.strip(".").split("...")
    ]
    body["outputs"] = outputs[0] if single else outputs
    return client.post("/_dash-update-component", json=body)


def test_the_answer(client, runs):
    output = "..answer.children...answered.data.."
    reply = ask(client, output, [("asked", "data", "zoom >= 2"), ("run", "value", 1), LATEST])
    assert reply.status_code == 200
    assert f"{runs.answer(1, 'zoom >= 2').robustness:.3f}" in reply.text
    assert "b.db" in reply.text


@pytest.mark.parametrize("run", ["../../etc/passwd", 7, -1, None, True, 0.5])
def test_only_runs_of_the_command_line(client, run):
    inputs = [("asked", "data", "zoom >= 2"), ("run", "value", run), LATEST]
    reply = ask(client, "..answer.children...answered.data..", inputs)
    assert reply.status_code == 200
    assert "is not one of those given on the command line" in reply.text


def test_host_names(client):
    assert client.get("/").status_code == 200
    assert client.get("/", headers={"Host": "localhost:8050"}).status_code == 200
    assert client.get("/", headers={"Host": "127.0.0.1:8050"}).status_code == 200
    assert client.get("/", headers={"Host": "evil.example:8050"}).status_code == 403
    assert client.get("/assets/../../state.py").status_code == 404


def test_nothing_may_be_loaded_from_elsewhere(client):
    reply = client.get("/")
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert "https://" not in reply.text


def test_large_requests_are_refused(client):
    reply = client.post("/_dash-update-component", data=b" " * (LARGEST_REQUEST + 1), content_type="application/json")
    assert reply.status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"{}", b"[]", b"null", b'{"output": "x"}', b"\xff", b"[" * 9000, b'{"inputs": 5}']
)
def test_requests_that_no_page_makes_are_one_line(client, body, caplog):
    reply = client.post("/_dash-update-component", data=body, content_type="application/json")
    assert reply.status_code == 400
    assert "Traceback" not in reply.text + caplog.text
    assert client.get("/_dash-component-suites/dash/../../etc/passwd").status_code in (400, 404)
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "data",
    [None, 5, [], {}, {"view": "space"}, {"view": "space", "run": 0}, {"view": "space", "run": [0], "against": {}},
     {"view": "space", "run": 0, "against": 0, "query": {"a": 1}, "axes": "zoom", "at": [1], "dark": "x"},
     {"view": "space", "run": 0, "against": 0, "query": "zoom > 0", "axes": [["zoom"], None], "at": {"zoom": "2"}}],
)  # fmt: skip
def test_wishes_that_no_page_has(client, data):
    reply = ask(client, "solid.children", [("seen", "data", data)])
    assert reply.status_code == 200
    assert "Traceback" not in reply.text


def test_an_unknown_host_is_one_line(runs):
    with pytest.raises(InputError, match=r"^--host: 'no\.such\.host\.invalid' is not an address"):
        listen(build(runs).server, "no.such.host.invalid", 0)


def test_figures_that_would_look_the_same_are_not_sent_again(client):
    def drawn(query, view, before):
        inputs = [("answered", "data", query), ("run", "value", 0), ("against", "value", 1), ("view", "value", view)]
        axes = [{"id": {"type": "axis", "place": place}, "property": "value", "value": name}
                for place, name in enumerate(("brightness", "zoom", "blur"))]  # fmt: skip
        slices = [{"id": {"type": "slice", "axis": name}, "property": "value", "value": -1}
                  for name in ("brightness", "zoom", "blur", "noise")]  # fmt: skip
        body = {
            "output": "..flat.children...drawn.data..",
            "outputs": [{"id": "flat", "property": "children"}, {"id": "drawn", "property": "data"}],
            "inputs": [
                *({"id": i, "property": p, "value": v} for i, p, v in inputs),
                axes,
                slices,
                {"id": "dark", "property": "value", "value": []},
            ],
            "state": [{"id": "drawn", "property": "data", "value": before}],
            "changedPropIds": ["answered.data"],
        }
        reply = client.post("/_dash-update-component", json=body)
        return reply.json["response"]["drawn"]["data"] if reply.status_code == 200 else reply.status_code

    assert drawn("zoom >= 5", "curves", drawn("zoom >= 2", "curves", None)) == 204
    assert drawn("zoom >= 5", "space", drawn("zoom >= 2", "space", None))["query"] == "zoom >= 5"


def test_token(runs):
    server = build(runs, "secret-token").server
    stranger = server.test_client()
    for path in ("/", "/_dash-layout", "/?token=wrong", "/?token=", "/?token=sécret"):
        assert stranger.get(path).status_code == 401
    stranger.set_cookie(cookie_of("secret-token"), "wrong")
    assert stranger.get("/").status_code == 401
    friend = server.test_client()
    assert friend.get("/?token=secret-token").status_code == 200
    assert friend.get("/_dash-layout").status_code == 200  # by the cookie from now on


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("::1", True), ("127.9.9.9", True), ("0.0.0.0", False), ("", False)]
)
def test_loopback(host, local):
    assert is_loopback(host) is local


def test_a_taken_port_is_one_line(runs):
    app = build(runs)
    server = listen(app.server, "127.0.0.1", 0)
    try:
        with pytest.raises(InputError, match=f"--port: cannot listen on 127.0.0.1:{server.port}"):
            listen(app.server, "127.0.0.1", server.port)
    finally:
        server.server_close()


def test_text_stays_text(runs):
    """What is typed comes back as a text node: nothing in the page takes mark-up."""
    with pytest.raises(InputError) as wrong:
        callbacks.checked(runs, "<img src=x onerror=alert(1)>")
    shown = panels.message(str(wrong.value)).to_plotly_json()
    assert isinstance(shown["props"]["children"], str)
    page = json.dumps(build(runs).layout.to_plotly_json(), default=lambda part: part.to_plotly_json())
    assert "dangerously" not in page
    assert "Markdown" not in page


@pytest.mark.parametrize("text", [None, "", "  ", 5, "zoom >", "zoom > 9", "(" * 500, "x" * 20_000])
def test_a_bad_query_is_one_line(runs, text):
    with pytest.raises(InputError) as wrong:
        callbacks.checked(runs, text)
    assert "\n" not in str(wrong.value)


def test_moving_a_slider(runs):
    assert callbacks.moved(runs, "order <= 2", [[0, 2], [1, 2], [0, 0], [0, 1]]) == (
        "order <= 2 and zoom >= 2 and blur == 0"
    )
    assert callbacks.moved(runs, None, [[-3, 99], [0, 2], [0, 2], [0, 1]]) == "order >= 0"


@pytest.mark.parametrize(
    ("click", "test"),
    [
        ({"points": [{"customdata": 5}]}, 5),
        *((bad, None) for bad in (None, {}, {"points": []}, {"points": [{}]}, [])),
        *(({"points": [{"customdata": bad}]}, None) for bad in (-1, 54, True, "5", [5], None)),
    ],
)
def test_clicks(runs, click, test):
    assert callbacks.clicked(click, runs) == test


def test_examples_are_the_inputs_of_that_test(runs):
    words = json.dumps(panels.test(runs, 0, 53).to_plotly_json(), default=lambda part: part.to_plotly_json())
    assert "brightness 5, zoom 5, blur 4, noise 5" in words
    assert words.count("data:image/png;base64,") == 16
    passed = int(runs.tomograms[0].passes.reshape(-1)[53])
    assert 2 <= passed <= 54  # so that there are both kinds to see
    assert (words.count('"fails"'), words.count('"passes"')) == (6, 2)
    assert "Confused, of the first 60 inputs" in words


def test_missing_data_is_told_in_the_page(folder, tmp_path):
    shutil.copy(folder / "a.db", tmp_path / "a.db")
    from testifai.runs import trusted_runs
    from testifai.runs.store import Store

    with Store.create_or_open(tmp_path / "a.db") as store:
        store.put(folder=str(tmp_path))
        trusted_runs.remember(store)
    words = str(panels.test(Runs([tmp_path / "a.db"]), 0, 3).to_plotly_json())
    assert "Inputs cannot be shown: " in words
    assert "0." in words  # the estimate is there all the same


def test_comparison_in_words(runs):
    found = runs.comparison(0, 1, "order == 0")
    words = str(panels.difference(found.regions[0], ("a.db", "b.db"), found.notes).to_plotly_json())
    assert f"{found.regions[0].difference:+.3f}" in words or found.regions[0].difference == 0
    assert "noise" in words or "no difference" in words
