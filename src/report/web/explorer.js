// The graph with its controls, the search field and the panel of the chosen state.
import { choice, data, element, labelled, number, shade } from "./base.js";
import { Graph } from "./graph.js";
import { layouts } from "./layout.js";
import { Model } from "./model.js";
import { panel } from "./panel.js";

const KEYS = "Arrow keys go to the nearest state in that direction, plus and minus zoom, 0 shows all, " +
  "Enter goes to the panel, Escape lets go.";

const NAMES = { value: "value", reward: "reward", size: "size", state: "latent state", sure: "confidence",
  compare: "the comparison" };

function legend(box, graph) {
  const model = graph.model;
  box.replaceChildren();
  const scale = (least, most) => {
    const bar = element("span", { class: "scale" });
    bar.style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1].map(shade).join(", ")})`;
    box.append(`${NAMES[graph.by]} ${number(least)} `, bar, " " + number(most));
  };
  const range = (values) => scale(Math.min(...values), Math.max(...values));
  if (graph.by === "value") range(model.value);
  else if (graph.by === "reward") range(model.size.map((_, k) => model.earns(k)));
  else if (graph.by === "size") range(model.size);
  else if (graph.by === "sure") scale(0, 1);
  else if (graph.by === "compare") box.append("grey: the same in both; orange: split in the other; blue: joined there");
  else box.append("a colour for each latent state, as everywhere on this page");
}

export function explorer() {
  const raw = data("graph-data");
  const place = document.getElementById("explorer-place");
  if (!raw || !place) return null;
  const model = new Model(raw);
  const other = data("graph-data-other");
  if (raw.compared) model.compared = raw.compared;
  const stages = data("refinement-data");

  const bar = element("div", { class: "bar-of-controls" }, place);
  const search = labelled("Go to state", element("input", { id: "go", type: "search", inputmode: "numeric",
    autocomplete: "off", placeholder: "number" }), bar);
  const colours = ["value", "reward", "size", "state"];
  if (model.sure) colours.push("sure");
  if (model.compared) colours.unshift("compare");
  const by = choice("Colour by", colours.map((by) => [by, NAMES[by]]), bar, "colour-by");
  const actions = [[-1, "all"]];
  for (let a = 0; a < Math.min(model.actions, 100); a++) actions.push([a, model.action(a)]);
  const only = choice("Action", actions, bar, "only-action");
  const best = element("input", { id: "policy", type: "checkbox" });
  const bestLabel = element("label", {}, bar);
  bestLabel.append(best, " optimal policy only");
  const lay = choice("Layout", layouts(model), bar, "layout");

  const split = element("div", { class: "split" }, place);
  const frame = element("div", { class: "graph-frame" }, split);
  const canvas = element("div", { id: "graph", class: "graph", tabindex: "0", role: "application",
    "aria-roledescription": "graph", "aria-describedby": "graph-keys",
    "aria-label": `The latent MDP: ${model.states} latent states and where actions lead` }, frame);
  const under = element("div", { class: "under" }, frame);
  const key = element("p", { class: "legend muted" }, under);
  const buttons = element("span", { class: "buttons" }, under);
  const zoomIn = element("button", { type: "button", text: "+", "aria-label": "Zoom in" }, buttons);
  const zoomOut = element("button", { type: "button", text: "−", "aria-label": "Zoom out" }, buttons);
  const all = element("button", { type: "button", text: "Show all" }, buttons);
  element("p", { id: "graph-keys", class: "muted keys", text: KEYS }, frame);
  const side = element("aside", { class: "panel", id: "panel", "aria-labelledby": "panel-title", tabindex: "-1" }, split);
  const told = element("p", { class: "unseen", role: "status", id: "told" }, place);
  place.hidden = false;

  const graph = new Graph(canvas, model, stages && stages.stages, { chosen: (k) => choose(k, false) }, by.value);
  const listeners = [];
  const self = { graph, model, stages, other, choose, show, on: (heard) => listeners.push(heard) };
  const facts = panel(side, self);

  function choose(k, move = true) {
    if (k >= model.states) return;
    graph.choose(k, move);
    facts.show(k);
    told.textContent = k < 0 ? "No latent state is chosen" : `Latent state ${k}, value ${number(model.value[k])}, ` +
      `${model.size[k]} observations`;
    for (const heard of listeners) heard(k);
  }

  // From elsewhere on the page: the graph comes into view, too.
  function show(k) {
    place.scrollIntoView({ block: "start" });
    choose(k);
    canvas.focus({ preventScroll: true });
  }

  search.addEventListener("input", () => {
    const k = search.value.trim();
    if (/^\d+$/.test(k) && Number(k) < model.states) choose(Number(k));
  });
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const k = search.value.trim();
    if (/^\d+$/.test(k) && Number(k) < model.states) side.focus();
    else told.textContent = `There is no latent state ${k}`;
  });
  const recolour = () => { graph.colourBy(by.value); legend(key, graph); };
  by.addEventListener("change", recolour);
  only.addEventListener("change", () => graph.showArrows(Number(only.value), best.checked));
  best.addEventListener("change", () => graph.showArrows(Number(only.value), best.checked));
  lay.value = graph.kind;
  lay.addEventListener("change", () => graph.lay(lay.value));
  zoomIn.addEventListener("click", () => graph.zoom(1.3));
  zoomOut.addEventListener("click", () => graph.zoom(1 / 1.3));
  all.addEventListener("click", () => graph.fit());

  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const move = moves[event.key];
    if (move && event.shiftKey) graph.pan(-60 * move[0], -60 * move[1]);
    else if (move) {
      const k = graph.toward(...move);
      if (k >= 0) choose(k);
    } else if (event.key === "+" || event.key === "=") graph.zoom(1.3);
    else if (event.key === "-") graph.zoom(1 / 1.3);
    else if (event.key === "0") graph.fit();
    else if (event.key === "Enter" && graph.chosen >= 0) side.focus();
    else if (event.key === "Escape") choose(-1);
    else return;
    event.preventDefault();
  });

  // marks in the words at the top lead into the graph
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.state-link");
    if (!link) return;
    event.preventDefault();
    show(Number(link.getAttribute("href").slice(2)));
  });
  legend(key, graph);
  return self;
}
