"""What the page does by itself, in JavaScript: nothing here needs the runs."""

from __future__ import annotations

# The figures' library is large: it is read while the page and the first answer are made, not after. Until then there is
# a sketch to look at.
PAGE = """<!DOCTYPE html>
<html lang="en">
    <head>
        {%metas%}
        <meta name="color-scheme" content="light dark">
        <title>{%title%}</title>
        {%favicon%}
        {%css%}
        <script defer src="_dash-component-suites/plotly/package_data/plotly.min.js"></script>
    </head>
    <body>
        <div class="sketch first">SKETCH</div>
        {%app_entry%}
        <footer>
            {%config%}
            {%scripts%}
            {%renderer%}
        </footer>
    </body>
</html>"""


def page(sketch: str | None) -> str:
    """The page as it is sent, with a picture on it that needs no script."""
    return PAGE.replace("SKETCH", sketch or "")


# Dark as the system is, unless the address says otherwise; whoever changes the system sees it here too.
CHOOSE_DARK = """
function (search) {
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const value = dark => dark ? ["dark"] : [];
    if (!window.testifaiFollows) {
        window.testifaiFollows = true;
        system.addEventListener("change", event => dash_clientside.set_props("dark", {value: value(event.matches)}));
    }
    const asked = new URLSearchParams(search || "").get("dark");
    return value(asked === null ? system.matches : asked === "1");
}
"""

DRESS = """
function (dark) {
    document.documentElement.style.colorScheme = dark.length ? "dark" : "light";
    return dark.length ? "dark" : "light";
}
"""

# Axes that are shown need no severity to stand at.
SHOW_PICKERS = """
function (view, axes, ids) {
    const flat = view !== "space" && view !== "compare";
    return [
        axes.length > 2 && !flat ? "row pickers" : "unseen",
        ids.map(id => flat || axes.includes(id.axis) ? "unseen" : "labelled slice"),
    ];
}
"""

# Cubes take the browser longer than flat figures; they are asked for when those can be seen.
WAIT_FOR_FLAT = """
function (data) {
    return new Promise(done => {
        const look = tries => {
            const seen = document.querySelector("#flat .main-svg") !== null || tries > 200;
            setTimeout(seen ? () => done(data) : look, 50, tries + 1);
        };
        look(0);
    });
}
"""

# How the runs stand. A page of a server that was started anew begins again, with the view that its address holds.
FOLLOW = """
function (ticks, revision, session) {
    const same = dash_clientside.no_update;
    return fetch("following").then(reply => reply.ok ? reply.json() : Promise.reject()).then(now => {
        if (now.session !== session) window.location.reload();
        return [now.revision === revision ? same : now.revision, now.words, now.kind];
    }).catch(() => [same, "testifai explore has ended: what is shown stays, and nothing more can be asked", "lost"]);
}
"""

# The address is changed without telling dcc.Location, which would start all over.
KEEP_ADDRESS = """
function (query, run, against, view, axes, at, dark, test) {
    const words = new URLSearchParams({run, against, view, axes: axes.join(",")});
    const fixed = dash_clientside.callback_context.inputs_list[5]
        .filter(one => one.value >= 0 && !axes.includes(one.id.axis)).map(one => one.id.axis + ":" + one.value);
    if (fixed.length) words.set("at", fixed.join(","));
    const system = window.matchMedia("(prefers-color-scheme: dark)").matches;
    if (Boolean(dark.length) !== system) words.set("dark", dark.length);
    if (query !== null && query !== undefined) words.set("query", query);
    if (test !== null && test !== undefined) words.set("test", test);
    window.history.replaceState(null, "", window.location.pathname + "?" + words);
    return dash_clientside.no_update;
}
"""
