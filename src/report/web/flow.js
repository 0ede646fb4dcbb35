// Clusters in columns with flows of observations between them, placed by d3-sankey: the tree of
// refinements, and two runs side by side. One tab stop; the arrow keys go from cluster to cluster.
import { sankey, sankeyLinkHorizontal } from "d3-sankey";
import { drawn, element } from "./base.js";

// columns: [{name, nodes: [{id, size, name, colour, of}]}], flows: [{source, target, value}] by id.
// heard(node or null) is told what is pointed at. Returns mark(set of ids or null).
export function flow(box, { columns, flows, label }, heard) {
  const all = columns.flatMap((column, at) => column.nodes.map((node) => ({ ...node, column: at })));
  const most = Math.max(...columns.map((column) => column.nodes.length));
  const wide = columns.length === 2 ? 420 : Math.max(320, Math.min(1040, 90 * columns.length + 130)), high = Math.max(140, Math.min(900, 16 * most + 40));
  const { nodes, links } = sankey().nodeId((node) => node.id).nodeAlign((node) => node.column).nodeWidth(14)
    .nodePadding(Math.max(1.5, Math.min(9, 320 / most))).extent([[4, 20], [wide - 40, high - 4]])
    .nodeSort((a, b) => a.order - b.order || 0).iterations(8)({
      nodes: all.map((node) => ({ ...node })), links: flows.map((one) => ({ ...one })) });
  const scroll = element("div", { class: "wide flow-box", role: "application", tabindex: "0", "aria-label": label }, box);
  const svg = drawn("svg", { class: columns.length === 2 ? "flow pair-flow" : "flow", viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, "aria-hidden": "true" }, scroll);
  const told = element("p", { role: "status", class: "flow-told" }, box);
  for (const [at, column] of columns.entries()) {
    const first = nodes.find((node) => node.column === at);
    const last = at > 0 && at === columns.length - 1;
    if (first) drawn("text", { x: last ? wide - 2 : first.x0, y: 12, class: "head", "text-anchor": last ? "end" : "start" }, svg).textContent = column.name;
  }
  const path = sankeyLinkHorizontal();
  const lines = links.map((link) => [link, drawn("path", { d: path(link), "stroke-width": Math.max(0.7, link.width), class: "link" }, svg)]);
  for (const [link, line] of lines) line.style.stroke = link.target.colour;
  const boxes = new Map(nodes.map((node) => {
    const bar = drawn("rect", { x: node.x0, y: node.y0, width: node.x1 - node.x0, height: Math.max(1.5, node.y1 - node.y0), class: "cluster" }, svg);
    bar.style.fill = node.colour;
    drawn("title", {}, bar).textContent = node.name;
    if (node.y1 - node.y0 > 9 && node.short !== undefined) {
      drawn("text", { x: node.x1 + 3, y: (node.y0 + node.y1) / 2 + 4, class: "name" }, svg).textContent = node.short;
    }
    bar.addEventListener("pointerenter", () => point(node));
    bar.addEventListener("pointerleave", () => point(kept));
    bar.addEventListener("click", () => keep(kept === node ? null : node));
    return [node, bar];
  }));

  let kept = null;

  // Everything that a cluster came from, and everything that became of it.
  function family(node) {
    const found = new Set([node]);
    const walk = (at, next, other) => {
      for (const link of at[next]) {
        if (found.has(link[other]) || link[other].rest) continue; // who shares a place is no family
        found.add(link[other]);
        walk(link[other], next, other);
      }
    };
    walk(node, "targetLinks", "source");
    const before = [...found];
    found.clear();
    found.add(node);
    walk(node, "sourceLinks", "target");
    for (const one of before) found.add(one);
    return found;
  }

  function point(node) {
    const near = node ? family(node) : null;
    for (const [one, bar] of boxes) {
      bar.classList.toggle("faint", Boolean(near) && !near.has(one));
      bar.classList.toggle("chosen", one === node);
    }
    for (const [link, line] of lines) line.classList.toggle("faint", Boolean(near) && !(near.has(link.source) && near.has(link.target)));
    const parts = node ? node.sourceLinks.map((link) => link.target.short).filter((name) => name !== undefined) : [];
    told.textContent = node ? node.name + (parts.length ? `; became ${parts.slice(0, 12).join(", ")}${parts.length > 12 ? ", …" : ""}` : "") : "";
    heard(node);
  }

  function keep(node) {
    kept = node;
    point(node);
  }

  scroll.addEventListener("keydown", (event) => {
    const from = kept || nodes[0];
    const column = nodes.filter((node) => node.column === from.column).sort((a, b) => a.y0 - b.y0);
    const largest = (some, end) => some.slice().sort((a, b) => b.value - a.value).map((link) => link[end])[0];
    let to = null;
    if (event.key === "Escape") return keep(null);
    if (!kept && event.key.startsWith("Arrow")) to = from;
    else if (event.key === "ArrowRight") to = largest(from.sourceLinks, "target");
    else if (event.key === "ArrowLeft") to = largest(from.targetLinks, "source");
    else if (event.key === "ArrowDown") to = column[column.indexOf(from) + 1];
    else if (event.key === "ArrowUp") to = column[column.indexOf(from) - 1];
    else return;
    event.preventDefault();
    if (to) keep(to);
  });
  return { point, keep, nodes };
}
