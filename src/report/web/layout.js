// Where latent states are drawn: in layers where there are few, by forces where there are some, and
// packed into the clusters they were split from where there are many.
import { Graph, layout as dagre } from "@dagrejs/dagre";
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from "d3-force";
import { hierarchy, pack } from "d3-hierarchy";

const LAYERS_USUAL = 12, ARROWS_IN_LAYERS = 2; // states, and arrows of each: more are a tangle in layers
const LAYERS_MOST = 120;
const FORCES_USUAL = 600;
const WIDE = 600; // pixels: layers go to the right, not down
const ROOMY = 60; // states, up to which arrows are long enough for their words
const FORCES_MOST = 2500; // on demand: a second or so

export function layouts(model) {
  const possible = [];
  if (model.states <= LAYERS_MOST) possible.push(["layers", "in layers"]);
  if (model.states <= FORCES_MOST) possible.push(["forces", "by forces"]);
  possible.push(["packed", "by refinement"]);
  return possible;
}

const MARGIN = 40; // circles and their loops reach that far beyond their places

function extent(places) {
  const of = (axis) => {
    const all = places.map((place) => place[axis]);
    return Math.max(...all) - Math.min(...all) + 2 * MARGIN;
  };
  return { width: of("x"), height: of("y") };
}

// How large all of it can be drawn in a room; never larger than `most`.
function scale(places, room, most = Infinity) {
  const all = extent(places);
  return Math.min(most, room.width / all.width, room.height / all.height);
}

// The height that places need in a room of that width: a row of four needs less than a ring.
export function heightOf(places, room, most) {
  return extent(places).height * scale(places, { width: room.width, height: Infinity }, most);
}

// Layers where there are few, unless words become too small to be drawn and forces leave more room.
export function usual(model, arrows, room, readable) {
  if (model.states > FORCES_USUAL) return "packed";
  if (model.states > LAYERS_USUAL) return "forces";
  if (arrows.filter((arrow) => arrow.from !== arrow.to).length > ARROWS_IN_LAYERS * model.states) return "forces";
  const inLayers = scale(layers(model, arrows, room.width > WIDE), room);
  return inLayers >= readable || inLayers >= scale(forces(model, arrows), room) ? "layers" : "forces";
}

function layers(model, arrows, wide) {
  const graph = new Graph({ multigraph: false });
  // words lie along arrows to the right, and across those that go down
  graph.setGraph({ rankdir: wide ? "LR" : "TB", nodesep: 42, ranksep: wide ? 96 : 60, marginx: 20, marginy: 20 });
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
  const apart = model.states <= ROOMY ? 1.3 : 1;
  const ticks = model.states <= 150 ? 300 : model.states <= FORCES_USUAL ? 120 : 60;
  forceSimulation(nodes)
    .force("links", forceLink(links).distance(110 * apart))
    .force("apart", forceManyBody().strength(-520 * apart * apart).theta(1.1).distanceMax(1200))
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

export function place(kind, model, arrows, stages, width) {
  if (kind === "packed") return packed(model, stages);
  return { places: kind === "layers" ? layers(model, arrows, width > WIDE) : forces(model, arrows), circles: [] };
}
