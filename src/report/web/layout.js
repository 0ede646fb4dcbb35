// Where latent states are drawn: in layers where there are few, by forces where there are some, and
// packed into the clusters they were split from where there are many.
import { Graph, layout as dagre } from "@dagrejs/dagre";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { hierarchy, pack } from "d3-hierarchy";

const LAYERS_MOST = 120;
const FORCES_USUAL = 600;
const FORCES_MOST = 2500; // on demand: a second or so

export function layouts(model) {
  const possible = [];
  if (model.states <= LAYERS_MOST) possible.push(["layers", "in layers"]);
  if (model.states <= FORCES_MOST) possible.push(["forces", "by forces"]);
  possible.push(["packed", "by refinement"]);
  return possible;
}

export function usual(model) {
  if (model.states <= 12) return "layers";
  return model.states <= FORCES_USUAL ? "forces" : "packed";
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
    const radius = 45 * Math.sqrt(k + 0.5);
    return { x: radius * Math.cos(angle), y: radius * Math.sin(angle) };
  });
  const links = arrows.filter((arrow) => arrow.from !== arrow.to && arrow.p >= 0.05)
    .map((arrow) => ({ source: arrow.from, target: arrow.to }));
  const ticks = model.states <= 150 ? 300 : model.states <= FORCES_USUAL ? 120 : 60;
  forceSimulation(nodes)
    .force("links", forceLink(links).distance(110))
    .force("apart", forceManyBody().strength(-520).theta(1.1).distanceMax(1200))
    .force("room", forceCollide(38))
    .force("x", forceX(0).strength(0.03))
    .force("y", forceY(0).strength(0.05))
    .alphaDecay(1 - Math.pow(0.001, 1 / ticks))
    .stop()
    .tick(ticks);
  return nodes;
}

// The refinement whose clusters are the groups: the last one with at most as many as would be drawn
// in a circle each. What lies in one circle was told apart later.
function groupsOf(model, stages) {
  const most = Math.ceil(1.5 * Math.sqrt(model.states));
  const last = stages ? stages.length - 1 : 0;
  let at = -1;
  for (let i = 0; i < last; i++) if (stages[i].sizes.length > 1 && stages[i].sizes.length <= most) at = i;
  if (at < 0 && last > 0 && stages[0].sizes.length <= model.states / 4) at = 0;
  const group = new Map();
  for (let k = 0; k < model.states; k++) {
    let cluster = at < 0 ? 0 : k;
    for (let i = last; at >= 0 && i > at && cluster >= 0; i--) cluster = stages[i].from[cluster];
    if (!group.has(cluster)) group.set(cluster, []);
    group.get(cluster).push(k);
  }
  return group;
}

function packed(model, stages) {
  const children = [...groupsOf(model, stages).values()].map((states) => ({ children: states.map((k) => ({ k })) }));
  const tree = hierarchy(children.length === 1 ? children[0] : { children }, (node) => node.children)
    .sum((node) => (node.k === undefined ? 0 : 1))
    .sort((a, b) => b.value - a.value || (a.data.k || 0) - (b.data.k || 0));
  pack().radius(() => 18).padding((node) => (node.depth === 0 && children.length > 1 ? 40 : 6))(tree);
  const places = [];
  const circles = [];
  for (const node of tree.descendants()) {
    if (node.data.k !== undefined) places[node.data.k] = { x: node.x, y: node.y };
    else if (node.depth === 1) circles.push({ x: node.x, y: node.y, r: node.r + 6 });
  }
  return { places, circles };
}

export function place(kind, model, arrows, stages, wide) {
  if (kind === "packed") return packed(model, stages);
  return { places: kind === "layers" ? layers(model, arrows, wide) : forces(model, arrows), circles: [] };
}
