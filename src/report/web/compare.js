// Two runs of the same data side by side: which latent states were split or joined.
import { colour, data, element } from "./base.js";
import { flow } from "./flow.js";
import { Graph } from "./graph.js";
import { Model } from "./model.js";

const LONGEST = 24; // letters of a column's name
const SHOWN = 60; // latent states of a run in the figure: those that differ come first

// Names without the folders that both lie in, and no longer than their column.
function shortened(names) {
  const parts = names.map((name) => name.split("/"));
  let same = 0;
  while (same < Math.min(...parts.map((one) => one.length)) - 1 && parts[0][same] === parts[1][same]) same++;
  return parts.map((one) => one.slice(same).join("/")).map((name) => (name.length > LONGEST ? "…" + name.slice(1 - LONGEST) : name));
}

export function compare(explorer) {
  const found = data("compare-data");
  const box = document.getElementById("compare-place");
  if (!found || !box) return;
  const there = new Map(), here = new Map(); // which are what
  for (const [k, j] of found.pairs) {
    there.set(k, (there.get(k) || new Set()).add(j));
    here.set(j, (here.get(j) || new Set()).add(k));
  }
  box.hidden = false;

  let other = null;
  const raw = data("graph-data-other");
  if (raw && explorer) {
    const split = element("div", { class: "pair" }, box);
    const sides = [0, 1].map((i) => {
      const side = element("div", {}, split);
      element("p", { class: "muted side-name", text: found.names[i] }, side);
      return element("div", { class: "graph", role: "img", id: i ? "graph-other" : "graph-first",
        "aria-label": `The latent MDP of ${found.names[i]}` }, side);
    });
    const graphs = [explorer.model, new Model(raw)].map((model, i) => {
      model.compared = model.compared || model.size.map(() => 0);
      const graph = new Graph(sides[i], model, i ? null : explorer.stages && explorer.stages.stages, { chosen: (k) => choose(i, k) }, "compare");
      return graph;
    });
    const told = element("p", { role: "status", id: "compare-told", class: "flow-told" }, box);
    const choose = (side, k) => {
      const partners = (side ? here : there).get(k) || new Set();
      graphs[side].choose(k, false);
      graphs[1 - side].highlight(k < 0 ? null : partners);
      told.textContent = k < 0 ? "" : `Latent state ${k} of ${found.names[side]} is ${[...partners].join(", ") || "nothing"} in ${found.names[1 - side]}`;
      if (!side && k >= 0) explorer.choose(k);
    };
    other = { choose };
  }
  element("p", { class: "muted", text: "Grey: the same in both. Orange: split in the other run. Blue: joined with others there." }, box);

  // the figure: those that differ, then the largest
  const pairs = found.pairs.slice().sort((a, b) => {
    const differs = (p) => (there.get(p[0]).size > 1 || here.get(p[1]).size > 1 ? 1 : 0);
    return differs(b) - differs(a) || b[2] - a[2];
  });
  const left = new Map(), right = new Map(), flows = [];
  for (const [k, j, n] of pairs) {
    if ((!left.has(k) && left.size >= SHOWN) || (!right.has(j) && right.size >= SHOWN)) continue;
    left.set(k, (left.get(k) || 0) + n);
    right.set(j, (right.get(j) || 0) + n);
    flows.push({ source: "a" + k, target: "b" + j, value: n });
  }
  const nodes = (side, sizes, partners, paint) => [...sizes].map(([k, size]) => ({ id: side + k, k, side, size, short: String(k),
    colour: paint(k), order: paint === colour ? k : Math.min(...partners.get(k)),
    name: `latent state ${k} of ${found.names[side === "a" ? 0 : 1]}: ${size} observations` }));
  const short = shortened(found.names);
  const columns = [
    { name: short[0], nodes: nodes("a", left, there, colour) },
    { name: short[1], nodes: nodes("b", right, here, (j) => colour(Math.min(...here.get(j)))) }];
  flow(box, { columns, flows, label: "Which latent state of one run is which of the other. Arrow keys go from one to the next." },
    (node) => { if (other) other.choose(node && node.side === "b" ? 1 : 0, node ? node.k : -1); });
}
