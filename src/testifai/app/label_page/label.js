"use strict";
// One input at a time. What is shown is text or a picture, never markup; every answer is on disk when the next is shown.

const $ = id => document.getElementById(id);
const SMALL = 96;  // pixels up to which a picture is drawn larger
let task = null;    // file, classes, how far it is
let row = null;     // the row that is shown; null: none is left
let busy = false;   // an answer is on its way: nobody has seen the next input yet
let first = 0;      // which of the matching classes Enter takes
const ahead = new Map();  // the input that probably comes next, fetched before it is needed

async function ask(path, given) {
    const options = given === undefined ? {} : {
        method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(given),
    };
    let reply;
    try {
        reply = await fetch(path, {cache: "no-store", ...options});
    } catch {
        throw new Error("No answer: has testifai label page ended? What was answered before is in the file; start it again.");
    }
    const found = reply.headers.get("Content-Type").includes("json") ? await reply.json() : {problem: await reply.text()};
    if (!reply.ok) throw new Error(found.problem);
    return found;
}

async function act(work) {
    if (busy) return;
    busy = true;
    try {
        await work();
        $("problem").hidden = true;
    } catch (error) {
        $("problem").textContent = error.message;
        $("problem").hidden = false;
    } finally {
        busy = false;
    }
}

const fetched = number => {
    const found = ahead.get(number) || ask(`rows/${number}`);
    ahead.clear();
    return found;
};

const answer = label => row !== null && act(async () => move(await ask("answer", {row, label})));
const undo = () => task !== null && act(async () => {
    const standing = await ask("undo", {});
    ahead.clear();  // it may be what was undone
    await move(standing);
});
const go = by => task !== null && act(async () => show(Math.max(0, Math.min(task.rows - 1, (row === null ? task.rows : row) + by))));

async function move(standing) {
    Object.assign(task, standing);
    await show(task.next);
}

async function show(number) {
    const found = number === null ? null : await fetched(number);
    row = number;
    $("input").replaceChildren(...(found === null ? finished() : drawn(found)));
    const told = [`${task.labelled} of ${task.rows} labelled`];
    if (number !== null) told.unshift(`Input ${number + 1}`);
    if (task.put_off) told.push(`${task.put_off} put off`);
    $("progress").textContent = told.join(" · ");
    $("bar").max = task.rows;
    $("bar").value = task.labelled;
    $("label").textContent = found !== null && found.label ? `Labelled ${found.label}; another answer changes it.` : "";
    for (const button of $("classes").children) {
        button.setAttribute("aria-pressed", found !== null && button.value === found.label);
    }
    for (const button of document.querySelectorAll("#classes button, #skip")) button.disabled = number === null;
    $("box").value = "";
    filter();
    ($("box-label").hidden ? document.querySelector("main") : $("box")).focus({preventScroll: true});
    if (number !== null && number + 1 < task.rows) {
        const asked = ask(`rows/${number + 1}`);
        asked.catch(() => ahead.clear());
        ahead.set(number + 1, asked);
    }
}

function element(tag, text, attributes = {}) {
    const made = document.createElement(tag);
    made.textContent = text;
    return Object.assign(made, attributes);
}

function drawn(found) {
    const parts = [];
    const {picture, texts, columns} = found.input;
    if (picture !== undefined && picture.startsWith("data:image/")) {
        const image = element("img", "", {alt: "The input to label", src: picture});
        image.onload = () => image.classList.toggle("small", Math.max(image.naturalWidth, image.naturalHeight) <= SMALL);
        parts.push(image);
    }
    for (const text of texts || []) parts.push(element("blockquote", text));
    if (columns !== undefined) {
        const table = element("table", "");
        for (const [name, value] of columns) {
            const line = table.insertRow();
            line.append(element("th", name, {scope: "row"}), element("td", value));
        }
        parts.push(table);
    }
    if (found.predicted) {
        const sure = found.confidence ? ` (${found.confidence})` : "";
        parts.push(element("p", `The model says: ${found.predicted}${sure}`, {className: "told"}));
    }
    if (found.path) parts.push(element("p", found.path, {className: "told"}));
    return parts;
}

const finished = () => [
    element("p", `All ${task.rows} are labelled. ← looks through them again.`),
    element("p", `Next: testifai label estimate ${task.file}`, {className: "told"}),
];

// How well a class fits what was typed: 0 best, 4 not at all.
function fit(name, typed) {
    const plain = name.toLowerCase();
    if (plain === typed) return 0;
    if (plain.startsWith(typed)) return 1;
    const place = plain.indexOf(typed);
    return place < 0 ? 4 : /\W/.test(plain[place - 1]) ? 2 : 3;
}

function matching() {
    const typed = $("box").value.trim().toLowerCase();
    const ranked = [...$("classes").children].map(button => [fit(button.value, typed), button]);
    return ranked.filter(([rank]) => rank < 4).sort((one, two) => one[0] - two[0]).map(([, button]) => button);
}

function filter() {
    if (!task.classes || $("box-label").hidden) return;
    const found = matching(), typed = $("box").value.trim() !== "";
    const places = new Map(found.map((button, place) => [button, place]));
    first = Math.max(0, Math.min(first, found.length - 1));
    for (const button of $("classes").children) {
        button.hidden = !places.has(button);
        button.style.order = places.get(button);
        button.classList.toggle("first", typed && button === found[first]);
    }
    if (typed && found.length) found[first].scrollIntoView({block: "nearest"});
    const taken = found.length ? `; Enter takes ${found[first].value}` : "";
    $("matches").textContent = typed ? `${found.length} of ${task.classes.length} match${taken}` : `${task.classes.length} classes`;
}

function take() {
    const typed = $("box").value.trim();
    if (typed === "") return;
    if (!task.classes) answer(typed);
    else if (matching().length) answer(matching()[first].value);
}

function choose(by) {
    first += by;
    filter();
}

function press(event) {
    if (event.isComposing) return;
    const typing = event.target === $("box") && $("box").value !== "";
    const undoing = event.key === "Backspace" || (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey));
    if (event.altKey || ((event.ctrlKey || event.metaKey) && !undoing)) return;
    const onButton = event.target instanceof HTMLButtonElement;
    const wanted = {
        Enter: onButton ? null : take,
        " ": onButton || typing ? null : () => answer(""),
        ArrowLeft: typing ? null : () => go(-1),
        ArrowRight: typing ? null : () => go(1),
        ArrowUp: typing ? () => choose(-1) : null,
        ArrowDown: typing ? () => choose(1) : null,
        Escape: typing ? () => { $("box").value = ""; filter(); } : null,
    }[event.key];
    const button = event.target === $("box") ? undefined
        : [...$("classes").children].find(one => one.dataset.key === event.key.toLowerCase());
    const meant = undoing ? (typing ? null : undo) : wanted || (button && (() => answer(button.value)));
    if (!meant) return;
    event.preventDefault();
    if (!event.repeat) meant();  // a key held down is one answer
}

function layOut() {
    document.title = `${task.file} · testifai label`;
    $("file").textContent = task.file;
    const classes = task.classes || [], keys = classes.length && classes[0].key !== "";
    for (const {name, key} of classes) {
        const button = element("button", name, {type: "button", value: name});
        if (key) {
            button.prepend(element("kbd", key));
            button.dataset.key = key;
        }
        button.onclick = () => answer(name);
        $("classes").append(button);
    }
    $("classes").classList.toggle("many", !keys);
    $("box-label").hidden = $("matches").hidden = keys;
    $("box-name").textContent = task.classes ? "Type a part of the name, then Enter" : "Type the label, a whole number, then Enter";
}

document.addEventListener("keydown", press);
$("box").oninput = () => { first = 0; filter(); };
$("skip").onclick = () => answer("");
$("undo").onclick = undo;
$("back").onclick = () => go(-1);
$("on").onclick = () => go(1);
// The token is in a cookie by now, and need not be read over somebody's shoulder.
history.replaceState(null, "", location.pathname);
act(async () => {
    task = await ask("task");
    layOut();
    await show(task.next);
});
