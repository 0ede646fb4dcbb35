// A slider over the refinements: sizes as a strip, and points in the plane coloured anew.
import { colour, data, element, share } from "./base.js";

function paint(canvas, points, labels, stage) {
  const size = canvas.width, pen = canvas.getContext("2d"), margin = 14;
  const low = [Infinity, Infinity], high = [-Infinity, -Infinity];
  points.forEach((value, i) => {
    low[i % 2] = Math.min(low[i % 2], value);
    high[i % 2] = Math.max(high[i % 2], value);
  });
  const place = (value, axis) => margin + (value - low[axis]) / (high[axis] - low[axis] || 1) * (size - 2 * margin);
  pen.clearRect(0, 0, size, size);
  labels.forEach((label, at) => {
    pen.fillStyle = label < 0 ? "#888" : colour(stage.to[label]);
    pen.beginPath();
    pen.arc(place(points[2 * at], 0), size - place(points[2 * at + 1], 1), label < 0 ? 2 : 4.5, 0, 7);
    pen.fill();
  });
}

export function stages() {
  const all = data("refinement-data");
  const box = document.getElementById("stages");
  if (!all || !box) return;
  const last = all.stages.length - 1;
  const label = element("label", {}, box);
  const name = element("b", { id: "stage-name" }, label);
  const slider = element("input", { type: "range", id: "stage", min: 0, max: last, value: last }, label);
  const strip = element("div", { class: "strip" }, box);
  let canvas = null;
  if (all.points) canvas = element("canvas", { width: 640, height: 640, role: "img" }, box);
  const list = element("ul", {}, box);

  function show() {
    const at = Number(slider.value), stage = all.stages[at];
    const order = stage.sizes.map((_, k) => k).sort((a, b) => stage.to[a] - stage.to[b] || a - b);
    const text = `${stage.name}: ${stage.sizes.length} latent states` +
      (stage.ignored ? `, ${share(stage.ignored, stage.looked_at)} of the observations ignored` : "");
    name.textContent = text;
    slider.setAttribute("aria-valuetext", text);
    strip.className = order.length > 150 ? "strip many" : "strip";
    strip.replaceChildren(...order.map((k) => {
      const part = element("i", { title: `${k}: ${share(stage.sizes[k], all.n)}` });
      part.style.width = 100 * stage.sizes[k] / all.n + "%";
      part.style.background = colour(stage.to[k]);
      return part;
    }));
    order.sort((a, b) => stage.sizes[b] - stage.sizes[a]);
    list.replaceChildren(...order.slice(0, 24).map((k) => {
      const item = element("li");
      const mark = element("i", {}, item);
      mark.style.background = colour(stage.to[k]);
      item.append(`${k}: ${share(stage.sizes[k], all.n)}` +
        (stage.from.length ? `, from ${stage.from[k] < 0 ? "ignored" : stage.from[k]}` : ""));
      return item;
    }));
    if (order.length > 24) element("li", { text: `and ${order.length - 24} smaller ones` }, list);
    if (canvas) {
      paint(canvas, all.points, all.labels[at], stage);
      canvas.setAttribute("aria-label", "observations at " + text);
    }
  }

  slider.addEventListener("input", show);
  box.hidden = false;
  show();
}
