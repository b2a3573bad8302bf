"use strict";
(() => {
  const drawings = JSON.parse(document.getElementById("drawings").textContent);
  const config = JSON.parse(document.getElementById("config").textContent);
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const drawn = new Set();
  const corners = 8;
  const narrow = 600;

  // A scene is as high as its place, whatever its width: on a narrow page it would not fit.
  const stepBack = (scene) => {
    const eye = Object.fromEntries(Object.entries(scene.camera.eye).map(([side, far]) => [side, 1.6 * far]));
    return Object.assign({}, scene, { camera: Object.assign({}, scene.camera, { eye }) });
  };
  // Paper is narrow, and nothing may be higher than a sheet of it.
  const sheet = 900;
  const onPaper = (layout, place) => {
    // A scene is not drawn anew before the page is printed: it keeps its size, and is shown smaller.
    if (layout.scene && place._fullLayout) {
      const { width, height } = place._fullLayout;
      place.style.zoom = Math.min(1, root.querySelector("main").clientWidth / width);
      return Object.assign({}, layout, { width, height, autosize: false });
    }
    const subtitle = Object.assign({}, layout.title && layout.title.subtitle, { font: { size: 9 } });
    const title = Object.assign({}, layout.title, { font: { size: 13 }, subtitle });
    return Object.assign({}, layout, { title }, layout.height ? { height: Math.min(layout.height, sheet) } : {});
  };
  let theme = system.matches ? "dark" : "light";

  // The words of a cube are written once, and shown at each of its corners.
  for (const { data } of Object.values(drawings)) {
    for (const trace of data) {
      if (trace.type === "mesh3d") trace.text = trace.text.flatMap((words) => Array(corners).fill(words));
    }
  }

  const draw = (name) => {
    const place = document.getElementById(name);
    const { data, light, dark } = drawings[name];
    let layout = Object.assign({}, theme === "dark" ? dark : light, { autosize: true });
    if (root.classList.contains("paper")) layout = onPaper(layout, place);
    if (layout.scene && place.clientWidth < narrow) layout.scene = stepBack(layout.scene);
    if (layout.height) place.style.height = layout.height + "px";
    drawn.add(name);
    return Plotly.react(place, data, layout, config);
  };

  const visible = (name) => document.getElementById(name).offsetParent !== null;

  const drawAll = () => Promise.all(Object.keys(drawings).filter(visible).map(draw)).then(() => {
    root.dataset.drawn = String(drawn.size);
  });

  const dress = (chosen) => {
    theme = chosen;
    root.dataset.theme = chosen;
    button.textContent = chosen === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-pressed", String(chosen === "dark"));
    return drawAll();
  };

  button.addEventListener("click", () => dress(theme === "dark" ? "light" : "dark"));
  system.addEventListener("change", (event) => dress(event.matches ? "dark" : "light"));
  for (const choice of document.querySelectorAll(".choice")) {
    const select = choice.querySelector("select");
    if (!select) continue;
    select.addEventListener("change", () => {
      for (const option of choice.querySelectorAll(".option")) {
        option.hidden = option.querySelector(".plot").id !== select.value;
      }
      draw(select.value);
    });
  }
  // Paper is light, narrower than the window, and shows nothing that has to be opened first.
  let before = theme;
  let closed = [];
  window.addEventListener("beforeprint", () => {
    before = theme;
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const one of closed) one.open = true;
    root.classList.add("paper");
    dress("light");
  });
  window.addEventListener("afterprint", () => {
    for (const one of closed) one.open = false;
    root.classList.remove("paper");
    for (const place of document.querySelectorAll(".plot")) place.style.zoom = "";
    dress(before);
  });
  dress(theme);
})();
