// The tree of splits: which cluster became which, refinement by refinement, linked with the graph.
import { colour, data, share } from "./base.js";
import { flow } from "./flow.js";

const COLUMNS = 12; // refinements shown: the first ones and the last
const CLUSTERS = 60; // of a refinement; smaller ones share a place

function shownStages(all) {
  const last = all.length - 1;
  if (all.length <= COLUMNS) return all.map((_, i) => i);
  const picked = Array.from({ length: COLUMNS }, (_, i) => Math.round(i * last / (COLUMNS - 1)));
  return [...new Set(picked)];
}

// The cluster that one of a later stage comes from, by majority at every step.
function ancestor(stages, at, cluster, until) {
  for (; at > until && cluster >= 0; at--) cluster = stages[at].from[cluster];
  return cluster;
}

export function tree(explorer) {
  const all = data("refinement-data");
  const box = document.getElementById("tree");
  if (!all || !box || all.stages.length < 2) return;
  const stages = all.stages;
  const shown = shownStages(stages);
  const end = stages.length - 1;

  // which final states each cluster ends in, through the same majorities
  const ends = new Map(shown.map((at) => [at, stages[at].sizes.map(() => new Set())]));
  stages[end].sizes.forEach((_, k) => {
    for (const at of shown) {
      const cluster = ancestor(stages, end, k, at);
      if (cluster >= 0) ends.get(at)[cluster].add(k);
    }
  });

  const places = new Map(); // stage → cluster → id of its node
  const columns = shown.map((at) => {
    const stage = stages[at];
    const order = stage.sizes.map((_, c) => c).filter((c) => stage.sizes[c] > 0).sort((a, b) => stage.sizes[b] - stage.sizes[a]);
    const place = new Map();
    const nodes = [];
    for (const [rank, c] of order.entries()) {
      const rest = rank >= CLUSTERS;
      const id = rest ? `${at}-rest` : `${at}-${c}`;
      place.set(c, id);
      let node = rest ? nodes.find((one) => one.id === id) : null;
      if (!node) {
        node = { id, rest, size: 0, short: rest ? "…" : String(c), colour: rest ? "#8c8c8c" : colour(stage.to[c]), of: new Set(),
          order: rest ? Infinity : stage.to[c] };
        nodes.push(node);
      }
      node.size += stage.sizes[c];
      for (const k of ends.get(at)[c]) node.of.add(k);
      node.name = rest ? `${stage.name}: ${order.length - CLUSTERS} smaller clusters`
        : `${stage.name}, cluster ${c}: ${share(stage.sizes[c], all.n)} of the observations`;
    }
    places.set(at, place);
    return { name: at === end ? stage.name : `c${at + 1}`, nodes };
  });

  const flows = new Map();
  for (let i = 1; i < shown.length; i++) {
    const at = shown[i];
    stages[at].sizes.forEach((size, c) => {
      const from = ancestor(stages, at, c, shown[i - 1]);
      const source = places.get(shown[i - 1]).get(from), target = places.get(at).get(c);
      if (!source || !target || size === 0) return;
      const key = source + ">" + target;
      const one = flows.get(key) || { source, target, value: 0 };
      one.value += size;
      flows.set(key, one);
    });
  }

  box.hidden = false;
  flow(box, { columns, flows: [...flows.values()],
    label: "Which cluster became which, refinement by refinement. Arrow keys go from cluster to cluster; the graph shows what became of it." },
  (node) => { if (explorer) explorer.graph.highlight(node ? node.of : null); });
}
