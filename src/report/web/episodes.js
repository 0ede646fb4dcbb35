// A scrubber over sample episodes: what was seen, the latent state over time, rewards as predicted
// and as they came, and where the model was surprised.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { choice, colour, dark, data, drawn, element, ink, number, percent } from "./base.js";

const IMPROBABLE = 0.05; // a next latent state below this is a surprise
const PLAY = 350; // milliseconds a step

function surprises(episode, allowed) {
  const found = [];
  episode.actions.forEach((_, t) => {
    const predicted = episode.one[t];
    const wrong = predicted !== null && Math.abs(predicted - episode.rewards[t]) > allowed;
    const elsewhere = episode.p[t] !== null && episode.p[t] < IMPROBABLE;
    if (wrong || elsewhere) found.push({ t, wrong, elsewhere });
  });
  return found;
}

// ---- the observation ------------------------------------------------------------------------------

function images(box, episode) {
  const picture = new Image();
  const scale = Math.max(1, Math.floor(300 / Math.max(episode.wide, episode.high)));
  const canvas = element("canvas", { width: episode.wide, height: episode.high, role: "img", class: "frame" }, box);
  canvas.style.width = `${scale * episode.wide}px`;
  let at = 0;
  const show = (t) => {
    at = t;
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, canvas.width, canvas.height);
    if (!picture.complete || t >= episode.seen) return;
    const x = (t % episode.columns) * episode.wide, y = Math.floor(t / episode.columns) * episode.high;
    pen.drawImage(picture, x, y, episode.wide, episode.high, 0, 0, episode.wide, episode.high);
    canvas.setAttribute("aria-label", `observation ${t}, an image`);
  };
  picture.addEventListener("load", () => show(at));
  picture.src = episode.sheet;
  return show;
}

function place(value, [low, high], size) {
  return high > low ? (value - low) / (high - low) * size : size / 2;
}

// Two numbers are a point among all points of the episode.
function points(box, episode, all) {
  const svg = drawn("svg", { viewBox: "-6 -6 172 172", class: "plane", role: "img" }, box);
  drawn("rect", { x: -5, y: -5, width: 170, height: 170 }, svg);
  const at = (t) => [place(episode.values[2 * t], all.range[0], 160), 160 - place(episode.values[2 * t + 1], all.range[1], 160)];
  const path = Array.from({ length: episode.seen }, (_, t) => at(t).map((v) => v.toFixed(1)).join(","));
  drawn("polyline", { points: path.join(" ") }, svg);
  const dot = drawn("circle", { r: 6 }, svg);
  const words = element("p", { class: "muted" }, box);
  return (t) => {
    dot.style.display = t < episode.seen ? "" : "none";
    if (t >= episode.seen) return;
    const [x, y] = at(t);
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", y);
    dot.setAttribute("fill", colour(episode.labels[t]));
    words.textContent = `(${number(episode.values[2 * t])}, ${number(episode.values[2 * t + 1])})`;
    svg.setAttribute("aria-label", "observation " + words.textContent);
  };
}

function vectors(box, episode, all) {
  const n = all.width;
  const low = Math.min(...all.range.map((r) => r[0])), high = Math.max(...all.range.map((r) => r[1]));
  const frame = element("div", { role: "img" }, box);
  const xs = Array.from({ length: n }, (_, i) => i);
  const plot = new uPlot({ width: 300, height: 150, legend: { show: false }, cursor: { show: false },
    scales: { x: { time: false }, y: { range: [low, high] } }, axes: [{ show: false }, { size: 46, stroke: ink("muted"), grid: { stroke: ink("line") } }],
    series: [{}, { stroke: ink("accent"), width: 1.5 }] }, [xs, xs.map(() => null)], frame);
  return (t) => {
    const values = t < episode.seen ? episode.values.slice(t * n, (t + 1) * n) : xs.map(() => null);
    plot.setData([xs, values]);
    frame.setAttribute("aria-label", `observation ${t}: ${n} numbers`);
  };
}

function numbers(box, episode, all) {
  const words = element("p", { class: "large" }, box);
  return (t) => {
    const values = episode.values.slice(t * all.width, (t + 1) * all.width).map(number);
    words.textContent = t < episode.seen ? (values.length > 1 ? `(${values.join(", ")})` : values[0]) : "not recorded";
  };
}

function observation(box, episode, all) {
  box.replaceChildren();
  if (all.look === "image" && episode.sheet) return images(box, episode);
  if (all.look !== "image" && episode.values) {
    if (all.look === "point") return points(box, episode, all);
    return all.look === "vector" ? vectors(box, episode, all) : numbers(box, episode, all);
  }
  element("p", { class: "muted", text: "The observations of this episode are left out, so that the page stays small." }, box);
  return () => {};
}

// ---- rewards --------------------------------------------------------------------------------------

function rewards(box, episode, jump) {
  box.replaceChildren();
  const steps = episode.actions.map((_, t) => t);
  const series = [{ label: "step" },
    { label: "reward", stroke: ink("ink"), width: 1.5, points: { show: true, size: 5 } },
    { label: "predicted, from the latent state", stroke: "#d55e00", width: 2, dash: [6, 4], points: { show: false } }];
  const values = [steps, episode.rewards, episode.one];
  if (episode.ahead) {
    series.push({ label: "predicted, from the first observation", stroke: "#0072b2", width: 2, dash: [2, 3], points: { show: false } });
    values.push(episode.ahead);
  }
  const axis = { stroke: ink("muted"), grid: { stroke: ink("line"), width: 1 }, ticks: { stroke: ink("line") } };
  const plot = new uPlot({ width: Math.max(260, box.clientWidth), height: 190, scales: { x: { time: false } },
    axes: [{ ...axis, incrs: [1, 2, 5, 10, 20, 50, 100] }, { ...axis, size: 54 }], series,
    cursor: { y: false, drag: { x: false, y: false } },
    legend: { live: false } }, values, box);
  plot.over.addEventListener("click", () => { if (plot.cursor.idx !== null && plot.cursor.idx !== undefined) jump(plot.cursor.idx); });
  return { plot, show: (t) => plot.setCursor({ left: plot.valToPos(Math.min(t, steps.length - 1), "x"), top: 10 }) };
}

// ---- all of it ------------------------------------------------------------------------------------

export function episodes(explorer) {
  const all = data("episode-data");
  const box = document.getElementById("episode-place");
  if (!all || !box) return;
  const model = explorer ? explorer.model : null;
  const action = (a) => (model ? model.action(a) : String(a));

  const bar = element("div", { class: "bar-of-controls" }, box);
  const which = choice("Episode", all.episodes.map((e, i) => [i, `${e.number} (${e.why}, ${e.length} steps)`]), bar, "episode");
  const play = element("button", { type: "button", id: "play", text: "Play" }, bar);
  const back = element("button", { type: "button", text: "‹", "aria-label": "One step back" }, bar);
  const on = element("button", { type: "button", text: "›", "aria-label": "One step on" }, bar);
  const label = element("label", { class: "scrub" }, box);
  const name = element("span", { id: "step-name", text: "Step" }, label);
  const slider = element("input", { type: "range", id: "step", min: 0, value: 0 }, label);
  const strip = element("div", { class: "strip states-strip", "aria-hidden": "true" }, box);
  const split = element("div", { class: "seen" }, box);
  const seen = element("div", { class: "observation" }, split);
  const facts = element("dl", { class: "facts", id: "step-facts" }, split);
  const chart = element("div", { class: "chart", role: "img", "aria-label": "Rewards as they came and as predicted, step by step" }, box);
  const jumps = element("p", { id: "surprises" }, box);
  box.hidden = false;

  let episode, look, plotted, found, timer = 0;

  function fact(name, ...parts) {
    element("dt", { text: name }, facts);
    element("dd", {}, facts).append(...parts);
  }

  function state(k) {
    if (k < 0) return "none: it was ignored";
    const span = element("span");
    const mark = element("i", { class: "mark" }, span);
    mark.style.background = colour(k);
    element("a", { href: "#s" + k, text: String(k), class: explorer ? "state-link" : "" }, span);
    return span;
  }

  function show() {
    const t = Number(slider.value), last = episode.actions.length;
    look(t);
    plotted.show(t);
    name.textContent = `Step ${t} of ${last}`;
    [...strip.children].forEach((part, i) => part.classList.toggle("now", i === t));
    facts.replaceChildren();
    fact("latent state", state(episode.labels[t]), episode.sure ? ` (confidence ${percent(episode.sure[t])})` : "");
    if (t < last) {
      fact("action", action(episode.actions[t]));
      fact("reward", number(episode.rewards[t]));
      fact("predicted", episode.one[t] === null ? "never seen before" : number(episode.one[t]),
        episode.ahead ? `; from the first observation ${number(episode.ahead[t])}` : "");
      fact("leads to", state(episode.labels[t + 1]),
        episode.p[t] === null ? "" : ` (probability ${percent(episode.p[t])})`);
    } else fact("then", episode.length > last ? "the episode goes on, but is not shown further" : episode.ended ? "the episode ends" : "the episode was cut off");
    const surprise = found.find((one) => one.t === t);
    facts.classList.toggle("surprised", Boolean(surprise));
    if (surprise) fact("surprise", surprise.wrong ? "the reward is not as predicted" : "it hardly ever leads there");
    slider.setAttribute("aria-valuetext", `step ${t}, latent state ${episode.labels[t]}${surprise ? ", a surprise" : ""}`);
    if (explorer) explorer.graph.now(episode.labels[t]);
  }

  function go(t) {
    slider.value = Math.max(0, Math.min(episode.actions.length, t));
    show();
  }

  function open() {
    stop();
    episode = all.episodes[Number(which.value)];
    found = surprises(episode, all.allowed || 1e-6);
    slider.max = episode.actions.length;
    slider.value = 0;
    look = observation(seen, episode, all);
    plotted = rewards(chart, episode, go);
    const surprising = new Set(found.map((one) => one.t));
    strip.replaceChildren(...episode.labels.map((k, t) => {
      const part = element("i", { title: `step ${t}: latent state ${k}`, class: surprising.has(t) ? "surprise" : "" });
      part.style.background = colour(k);
      part.addEventListener("click", () => go(t));
      return part;
    }));
    jumps.replaceChildren(found.length ? `${found.length} surprise${found.length > 1 ? "s" : ""}: ` : "No surprise in this episode.");
    for (const one of found.slice(0, 20)) {
      const button = element("button", { type: "button", text: "step " + one.t }, jumps);
      button.addEventListener("click", () => go(one.t));
      jumps.append(" ");
    }
    show();
  }

  function stop() {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
  }

  play.addEventListener("click", () => {
    if (timer) return stop();
    if (Number(slider.value) >= episode.actions.length) go(0);
    play.textContent = "Pause";
    timer = setInterval(() => {
      go(Number(slider.value) + 1);
      if (Number(slider.value) >= episode.actions.length) stop();
    }, PLAY);
  });
  back.addEventListener("click", () => go(Number(slider.value) - 1));
  on.addEventListener("click", () => go(Number(slider.value) + 1));
  slider.addEventListener("input", show);
  which.addEventListener("change", open);
  dark.addEventListener("change", () => { const t = slider.value; open(); go(Number(t)); });
  window.addEventListener("resize", () => plotted.plot.setSize({ width: Math.max(260, chart.clientWidth), height: 190 }));
  open();
  if (explorer) explorer.graph.now(-1);
}
