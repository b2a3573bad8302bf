/* What needs nothing of the server: the link to what is shown, and figures as PNG, SVG and CSV. */
(function () {
    "use strict";

    document.addEventListener("click", event => {
        const button = event.target.closest("button");
        if (!button) return;
        if (button.id === "share") share(button);
        if (button.dataset.export) save(button);
    });

    // A figure that was drawn while the page changed around it may have missed that.
    setInterval(() => document.querySelectorAll(".figure .js-plotly-plot").forEach(plot => {
        const drawn = plot.querySelector(".main-svg"), room = plot.closest(".figure").clientWidth;
        if (drawn && room && Math.abs(drawn.clientWidth - room) > 2) window.Plotly.Plots.resize(plot).catch(() => {});
    }), 2000);

    function say(button, words) {
        button.dataset.words = button.dataset.words || button.textContent;
        button.textContent = words;
        setTimeout(() => { button.textContent = button.dataset.words; }, 1500);
    }

    // The address bar leaves light and dark to each reader's system; a link shows what its sender sees. A token never
    // is in it: the page has taken it from the address, and a person who opens the link needs a separate one.
    function link() {
        const address = new URL(window.location.href);
        address.searchParams.delete("token");
        address.searchParams.set("dark", document.querySelector("#root").className === "dark" ? "1" : "0");
        return address.href;
    }

    function share(button) {
        const done = () => say(button, "copied");
        // Only pages of this machine, or encrypted ones, have a clipboard.
        const copied = navigator.clipboard ? navigator.clipboard.writeText(link()) : Promise.reject();
        copied.then(done, () => copyBySelection(link()) ? done() : window.prompt("the link", link()));
    }

    function copyBySelection(words) {
        const box = document.createElement("textarea");
        box.value = words;
        document.body.append(box);
        box.select();
        const copied = document.execCommand("copy");
        box.remove();
        return copied;
    }

    function save(button) {
        const plot = button.closest(".figure").querySelector(".js-plotly-plot");
        const name = "testifai " + button.dataset.name, kind = button.dataset.export;
        if (!plot) return;
        if (kind === "csv") {
            const url = URL.createObjectURL(new Blob([csv(plot)], {type: "text/csv"}));
            download(url, name + ".csv");
            setTimeout(() => URL.revokeObjectURL(url), 10000);
            return;
        }
        // What is seen now, zoomed and turned, on the ground of the page.
        const ground = getComputedStyle(document.querySelector("#root")).backgroundColor;
        const figure = {data: plot.data, layout: {...plot.layout, paper_bgcolor: ground}, config: {displayModeBar: false}};
        const size = {width: plot.clientWidth, height: plot.clientHeight};
        window.Plotly.toImage(figure, {format: kind, scale: kind === "png" ? 2 : 1, ...size})
            .then(url => download(url, name + "." + kind), () => say(button, "failed"));
    }

    function download(url, name) {
        const anchor = document.createElement("a");
        anchor.href = url;
        anchor.download = name;
        document.body.append(anchor);
        anchor.click();
        anchor.remove();
    }

    // -- a figure's data: a row for each thing on it that the mouse can tell something about -------------------------

    const COLUMNS = ["series", "x", "y", "z", "value", "low", "high", "test", "about"];

    function csv(plot) {
        const rows = plot._fullData.filter(trace => trace.visible === true && trace.hoverinfo !== "skip").flatMap(
            trace => points(trace, plot.layout));
        const used = COLUMNS.filter(name => rows.some(row => row[name] !== undefined && row[name] !== ""));
        const first = plot._fullData[0] || {};
        const lines = [used.map(name => title(name, first, plot.layout)), ...rows.map(row => used.map(name => row[name]))];
        return lines.map(cells => cells.map(quoted).join(",")).join("\r\n") + "\r\n";
    }

    function points(trace, layout) {
        const series = trace.showlegend === false || /^trace \d+$/.test(trace.name) ? "" : plain(trace.name);
        const read = (words, test) => ({series, test: typeof test === "number" && test >= 0 ? test : "", ...told(words)});
        const place = (side, value) => level(axis(side, trace, layout), value);
        if (trace.type === "heatmap") {
            return Array.from(trace.z).flatMap((row, i) => Array.from(row).map((value, j) => ({
                x: place("x", trace.x[j]), y: place("y", trace.y[i]), value,
                ...read(at(at(trace.hovertext, i), j), at(at(trace.customdata, i), j)),
            }))).filter(row => Number.isFinite(row.value));
        }
        if (trace.type === "mesh3d") {  // of cubes: eight corners each
            const middle = (values, corner) => Math.round((values[corner] + values[corner + 7]) / 2);
            return Array.from({length: trace.x.length / 8}, (_, cube) => 8 * cube).map(corner => ({
                x: place("x", middle(trace.x, corner)), y: place("y", middle(trace.y, corner)),
                z: place("z", middle(trace.z, corner)), value: trace.intensity[corner],
                ...read(trace.text[corner], at(trace.customdata, corner)),
            }));
        }
        if (typeof trace.hovertext === "string" && trace.hovertext) return [read(trace.hovertext)];  // of a whole line
        return Array.from(trace.x || [], (_, i) => ({
            x: place("x", trace.x[i]), y: place("y", trace.y[i]), ...read(at(trace.hovertext, i), at(trace.customdata, i)),
        }));
    }

    const at = (values, place) => values === undefined || values === null ? undefined : values[place];

    function axis(side, trace, layout) {
        if (trace.scene) return layout[trace.scene][side + "axis"];
        const number = (trace[side + "axis"] || side).slice(1);
        return layout[side + "axis" + number] || {};
    }

    // Places on an axis stand for severities or names where it says so, and where it counts in whole steps, points lie
    // beside their place so that they do not cover each other.
    function level(axis, value) {
        const found = axis.ticktext ? Array.from(axis.tickvals).indexOf(value) : -1;
        if (found >= 0) return plain(axis.ticktext[found]);
        return axis.dtick === 1 ? Math.round(value) : value;
    }

    function title(name, trace, layout) {
        if (name === "value") return plain(layout.coloraxis?.colorbar?.title?.text || name);
        return "xyz".includes(name) ? plain(axis(name, trace, layout).title?.text || name) : name;
    }

    // Bounds are in the words that the mouse shows, to three places.
    function told(words) {
        const about = plain(words === undefined || words === null ? "" : words);
        const bounds = about.match(/\((-?[\d.]+) … (-?[\d.]+)\)/);
        const exact = about.match(/(-?[\d.]+) \(exact\)/);
        const [low, high] = bounds ? bounds.slice(1) : exact ? [exact[1], exact[1]] : ["", ""];
        return {low, high, about};
    }

    const plain = text => String(text).replace(/<br>/g, "; ").replace(/<[^>]*>/g, "")
        .replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");

    // A cell that begins like a formula would be one in a spreadsheet.
    function quoted(cell) {
        if (typeof cell === "number") return Number.isFinite(cell) ? String(cell) : "";
        const text = String(cell === undefined || cell === null ? "" : cell);
        const harmless = /^[=+@\t\r]/.test(text) || /^-(?![\d.])/.test(text) ? "'" + text : text;
        return /[",\r\n;]/.test(harmless) ? '"' + harmless.replace(/"/g, '""') + '"' : harmless;
    }
})();

/* What the page does without the runs, as Dash's clientside callbacks (callbacks.py names them). */
window.dash_clientside = Object.assign({}, window.dash_clientside, {testifai: {
    // Dark as the system is, unless the address says otherwise; a change of the system takes effect here too.
    chooseDark: function (search) {
        const system = window.matchMedia("(prefers-color-scheme: dark)");
        const value = dark => dark ? ["dark"] : [];
        if (!window.testifaiFollows) {
            window.testifaiFollows = true;
            system.addEventListener("change", event => dash_clientside.set_props("dark", {value: value(event.matches)}));
        }
        const asked = new URLSearchParams(search || "").get("dark");
        return value(asked === null ? system.matches : asked === "1");
    },

    dress: function (dark) {
        document.documentElement.style.colorScheme = dark.length ? "dark" : "light";
        return dark.length ? "dark" : "light";
    },

    // Axes that are shown need no severity to stand at.
    showPickers: function (view, axes, ids) {
        const flat = view !== "space" && view !== "compare";
        return [
            axes.length > 2 && !flat ? "row pickers" : "unseen",
            ids.map(id => flat || axes.includes(id.axis) ? "unseen" : "labelled slice"),
        ];
    },

    // Cubes take the browser longer than flat figures; they are asked for when those can be seen.
    waitForFlat: function (data) {
        return new Promise(done => {
            const look = tries => {
                const seen = document.querySelector("#flat .main-svg") !== null || tries > 200;
                setTimeout(seen ? () => done(data) : look, 50, tries + 1);
            };
            look(0);
        });
    },

    // How the runs stand. A page of a server that was started anew begins again, with the view that its address holds.
    follow: function (ticks, revision, session) {
        const same = dash_clientside.no_update;
        return fetch("following").then(reply => reply.ok ? reply.json() : Promise.reject()).then(now => {
            if (now.session !== session) window.location.reload();
            return [now.revision === revision ? same : now.revision, now.words, now.kind];
        }).catch(() => [same, "testifai explore has ended: what is shown stays, and nothing more can be asked", "lost"]);
    },

    // The address is changed without telling dcc.Location, which would start all over.
    keepAddress: function (query, run, against, view, axes, at, dark, test) {
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
    },
}});
