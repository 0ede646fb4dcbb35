// Where latent states are drawn: in layers where there are few, by forces where there are some, and
// packed into the clusters they were split from where there are many.
import { Graph, layout as dagre } from "@dagrejs/dagre";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { hierarchy, pack } from "d3-hierarchy";

const LAYERS_MOST = 120;
const FORCES_MOST = 600;

export function layouts(model) {
  const possible = [];
  if (model.states <= LAYERS_MOST) possible.push(["layers", "in layers"]);
  if (model.states <= FORCES_MOST) possible.push(["forces", "by forces"]);
  possible.push(["packed", "by refinement"]);
  return possible;
}

export function usual(model) {
  if (model.states <= 40) return "layers";
  return model.states <= FORCES_MOST ? "forces" : "packed";
}

function layers(model, arrows, wide) {
  const graph = new Graph({ multigraph: false });
  graph.setGraph({ rankdir: wide ? "LR" : "TB", nodesep: 42, ranksep: 96, marginx: 20, marginy: 20 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (let k = 0; k < model.states; k++) graph.setNode(String(k), { width: 44, height: 44 });
  for (const arrow of arrows) {
    if (arrow.from === arrow.to) continue;
    graph.setEdge(String(arrow.from), String(arrow.to), { weight: 1 + 4 * arrow.p, width: 40, height: 24, labelpos: "c" });
  }
  dagre(graph);
  return Array.from({ length: model.states }, (_, k) => graph.node(String(k)));
}

// Starts on a spiral, by number, so that the same page looks the same every time.
function forces(model, arrows) {
  const nodes = Array.from({ length: model.states }, (_, k) => {
    const angle = 2.399963 * k;
    const radius = 30 * Math.sqrt(k + 0.5);
    return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
  const links = arrows.filter((arrow) => arrow.from !== arrow.to && arrow.p >= 0.05)
    .map((arrow) => ({ source: arrow.from, target: arrow.to }));
  const ticks = model.states <= 150 ? 300 : 120;
  forceSimulation(nodes)
    .force("links", forceLink(links).distance(70))
    .force("apart", forceManyBody().strength(-260).theta(1.1).distanceMax(1200))
    .force("room", forceCollide(26))
    .force("x", forceX(0).strength(0.03))
    .force("y", forceY(0).strength(0.05))
    .alphaDecay(1 - Math.pow(0.001, 1 / ticks))
    .stop()
    .tick(ticks);
  return nodes;
}

// Without clusters that nothing is left of, and without circles around one circle.
function shortened(node) {
  if (node.k !== undefined) return node;
  const children = node.children.map(shortened).filter((child) => child);
  if (children.length === 0) return null;
  return children.length === 1 ? children[0] : { children };
}

// The tree of refinements (each cluster under the one that most of it comes from) as circles in
// circles: what lies close together was told apart last.
function packed(model, stages) {
  const root = { children: [] };
  const levels = stages ? stages.slice(0, -1) : [];
  let above = new Map();
  levels.forEach((stage, at) => {
    const here = new Map();
    stage.sizes.forEach((_, c) => {
      const parent = at > 0 ? above.get(stage.from[c]) : null;
      const node = { children: [] };
      (parent || root).children.push(node);
      here.set(c, node);
    });
    above = here;
  });
  const last = stages ? stages[stages.length - 1] : null;
  for (let k = 0; k < model.states; k++) {
    const parent = last && last.from.length ? above.get(last.from[k]) : null;
    (parent || root).children.push({ k });
  }
  const tree = hierarchy(shortened(root), (node) => node.children)
    .sum((node) => (node.k === undefined ? 0 : 1))
    .sort((a, b) => b.value - a.value || (a.data.k || 0) - (b.data.k || 0));
  const side = 52 * Math.sqrt(model.states) + 80;
  pack().size([1.35 * side, 1.35 * side]).padding((node) => 6 + 3 * node.height)(tree);
  const places = [];
  const circles = [];
  for (const node of tree.descendants()) {
    if (node.data.k !== undefined) places[node.data.k] = { x: node.x, y: node.y };
    else if (node.depth === 1 && node.value > 1) circles.push({ x: node.x, y: node.y, r: node.r });
  }
  // circles of one state shrink and grow with the packing; states are all drawn alike
  const smallest = Math.min(...tree.leaves().map((leaf) => leaf.r));
  const scale = 19 / Math.max(1e-9, smallest);
  for (const place of places) {
    place.x *= scale;
    place.y *= scale;
  }
  return { places, circles: circles.map((c) => ({ x: c.x * scale, y: c.y * scale, r: c.r * scale })) };
}

export function place(kind, model, arrows, stages, wide) {
  if (kind === "packed") return packed(model, stages);
  return { places: kind === "layers" ? layers(model, arrows, wide) : forces(model, arrows), circles: [] };
}
