// The latent MDP as a graph, drawn by Cytoscape.js.
import cytoscape from "cytoscape";
import { colour, dark, ink, number, shade } from "./base.js";
import { heightOf, place, usual } from "./layout.js";
import { words } from "./model.js";

const MANY_STATES = 300; // beyond: no words on arrows, and a picture is moved while panning
const MANY_ARROWS = 500; // beyond: arrows are plain lines, but for those of the chosen state
const ARROWS_DRAWN = 9000;
const WORDS = 11, WORDS_LEAST = 8; // pixels of an arrow's words, and when they are left out
const ZOOM_FIT = 1.3, PADDING = 24;

const id = (k) => "s" + k;

function luminous(css) {
  const canvas = luminous.pen || (luminous.pen = document.createElement("canvas").getContext("2d"));
  canvas.fillStyle = css;
  const hex = parseInt(canvas.fillStyle.slice(1), 16);
  return 0.299 * (hex >> 16) + 0.587 * ((hex >> 8) & 255) + 0.114 * (hex & 255) > 125;
}

function styles(many, straight) {
  const paper = ink("paper"), text = ink("ink"), muted = ink("muted"), accent = ink("accent");
  const bad = ink("bad");
  return [
    { selector: "node", style: { width: "data(wide)", height: "data(wide)", label: "data(name)",
      "background-color": "data(fill)", color: "data(ink)", "font-size": 13, "text-valign": "center",
      "text-halign": "center", "border-width": 1, "border-color": muted, "min-zoomed-font-size": 5 } },
    { selector: "node.group", style: { shape: "ellipse", "background-color": muted,
      "background-opacity": 0.07, "border-opacity": 0.35, label: "", events: "no", "z-index": 0 } },
    { selector: "node.end", style: { "border-width": 5, "border-style": "double", "border-color": text } },
    { selector: "node.open", style: { "border-width": 4, "border-style": "dashed", "border-color": bad } },
    { selector: "edge", style: { width: "data(wide)", "line-color": "data(fill)", "target-arrow-color": "data(fill)",
      "line-opacity": many ? 0.45 : 0.9, "curve-style": straight ? "haystack" : "bezier", "target-arrow-shape": "triangle",
      "arrow-scale": 0.9, "control-point-step-size": 46, "loop-direction": "-45deg", "loop-sweep": "50deg" } },
    { selector: "edge.named", style: { label: "data(name)", "text-wrap": "wrap", "font-size": WORDS, color: text,
      "text-background-color": paper, "text-background-opacity": 0.85, "text-background-padding": 2,
      "min-zoomed-font-size": WORDS_LEAST } },
    { selector: "edge.near", style: { "curve-style": "bezier", label: "data(name)", "text-wrap": "wrap",
      "font-size": WORDS, color: text, "text-background-color": paper, "text-background-opacity": 0.85,
      "text-background-padding": 2, "line-opacity": 1, "z-index": 9 } },
    { selector: "edge.open", style: { "curve-style": "bezier", "line-style": "dashed", "line-color": bad,
      "target-arrow-shape": "none", width: 3, label: "data(name)", "font-size": WORDS, color: bad,
      "text-background-color": paper, "text-background-opacity": 0.9, "line-opacity": 1 } },
    { selector: ".faint", style: { opacity: many ? 0.15 : 0.35 } },
    ...(many ? [{ selector: "edge.faint", style: { visibility: "hidden" } }] : []),
    { selector: "node.group.faint", style: { opacity: 1 } },
    { selector: "node.chosen", style: { "border-width": 5, "border-style": "solid", "border-color": accent, "z-index": 10 } },
    { selector: "node.now", style: { "outline-width": 5, "outline-color": accent, "outline-offset": 3, "z-index": 11 } },
  ];
}

export class Graph {
  constructor(box, model, stages, heard, by = "state") {
    this.model = model;
    this.stages = stages;
    this.heard = heard;
    this.chosen = -1;
    this.only = -1;
    this.best = false;
    this.by = by;
    this.many = model.states > MANY_STATES;
    this.box = box;
    this.arrows = model.arrows();
    this.straight = this.arrows.length > MANY_ARROWS;
    this.kind = usual(model, this.arrows, this.room(), WORDS_LEAST / WORDS);
    const { places, circles } = this.places();
    this.cy = cytoscape({
      container: box,
      elements: [...this.groupElements(circles), ...this.nodeElements(places), ...this.arrowElements(), ...this.openElements()],
      layout: { name: "preset", fit: false },
      style: styles(this.many, this.straight),
      minZoom: 0.02, maxZoom: 4,
      textureOnViewport: this.many, hideEdgesOnViewport: false,
      pixelRatio: this.many ? 1 : "auto",
      autoungrabify: this.many, boxSelectionEnabled: false, selectionType: "single",
      styleEnabled: true,
    });
    this.cy.on("tap", "node", (event) => {
      if (event.target.hasClass("group")) return;
      this.heard.chosen(Number(event.target.id().slice(1)));
    });
    this.cy.on("tap", (event) => { if (event.target === this.cy) this.heard.chosen(-1); });
    dark.addEventListener("change", () => this.restyle());
    this.fit();
  }

  // What there is to draw in, as high as the style lets it be.
  room() {
    this.box.style.removeProperty("--high");
    return { width: this.box.clientWidth - 2 * PADDING, height: this.box.clientHeight - 2 * PADDING };
  }

  // Where states go; the box becomes as high as that needs.
  places() {
    const room = this.room();
    const found = place(this.kind, this.model, this.arrows, this.stages, room.width);
    this.box.style.setProperty("--high", Math.ceil(heightOf(found.places, room, ZOOM_FIT)) + 2 * PADDING + "px");
    return found;
  }

  groupElements(circles) {
    return circles.map((c, i) => ({ group: "nodes", classes: "group", selectable: false, grabbable: false,
      data: { id: "g" + i, wide: 2 * c.r, name: "", fill: "#888", ink: "#888" }, position: { x: c.x, y: c.y } }));
  }

  nodeElements(places) {
    const doubtful = new Set(this.model.doubts.flatMap((doubt) => (doubt.kind === "pair" ? [doubt.state, doubt.other] : [doubt.state])));
    const largest = Math.max(...this.model.size, 1);
    return Array.from({ length: this.model.states }, (_, k) => ({
      group: "nodes",
      classes: (this.model.ends.has(k) ? "end " : "") + (doubtful.has(k) ? "open" : ""),
      data: { id: id(k), name: String(k), ...this.paint(k),
        wide: this.many ? 34 : 30 + 24 * Math.sqrt(this.model.size[k] / largest) },
      position: { x: places[k].x, y: places[k].y },
    }));
  }

  // What a state is coloured by.
  paint(k) {
    const model = this.model;
    let fill;
    if (this.by === "value") fill = shade(this.portion(model.value, k));
    else if (this.by === "reward") fill = shade(this.portion(this.earned || (this.earned = model.size.map((_, j) => model.earns(j))), k));
    else if (this.by === "sure") fill = shade(model.sure[k]);
    else if (this.by === "size") fill = shade(this.portion(model.size, k));
    else if (this.by === "compare") fill = model.compared[k] === 0 ? "#8c8c8c" : model.compared[k] > 0 ? "#e69f00" : "#0072b2";
    else fill = colour(k);
    return { fill, ink: luminous(fill) ? "#1b1f24" : "#ffffff" };
  }

  portion(values, k) {
    if (values.least === undefined) {
      values.least = Math.min(...values);
      values.most = Math.max(...values);
    }
    return values.most > values.least ? (values[k] - values.least) / (values.most - values.least) : 0.5;
  }

  arrowElements() {
    let arrows = this.model.arrows(this.only, this.best);
    if (arrows.length > ARROWS_DRAWN) {
      arrows = arrows.sort((a, b) => b.p * this.model.size[b.from] - a.p * this.model.size[a.from]).slice(0, ARROWS_DRAWN);
    }
    return arrows.map((arrow) => this.arrowElement(arrow, this.many || this.straight ? "" : "named"));
  }

  arrowElement(arrow, classes) {
    const earning = Math.abs(arrow.reward) >= 0.005;
    const single = arrow.by.length === 1 && this.model.actions > 1;
    return {
      group: "edges", classes,
      data: { id: `${arrow.from}-${arrow.to}`, source: id(arrow.from), target: id(arrow.to), name: words(this.model, arrow),
        wide: earning ? 3.5 : 1 + arrow.p, fill: earning ? "#d55e00" : single ? colour(arrow.by[0][0]) : "#8c8c8c" },
    };
  }

  // Pairs that may be one, as the verdict has them.
  openElements() {
    return this.model.doubts.filter((doubt) => doubt.kind === "pair").map((doubt) => ({
      group: "edges", classes: "open",
      data: { id: `open-${doubt.state}-${doubt.other}`, source: id(doubt.state), target: id(doubt.other), wide: 3,
        fill: "#970d22", name: `may be one (${number(doubt.nats)} nats)` },
    }));
  }

  restyle() {
    this.cy.style(styles(this.many, this.straight));
  }

  colourBy(what) {
    this.by = what;
    this.cy.batch(() => {
      for (let k = 0; k < this.model.states; k++) this.node(k).data(this.paint(k));
    });
  }

  showArrows(only, best) {
    this.only = only;
    this.best = best;
    const chosen = this.chosen;
    this.cy.batch(() => {
      this.cy.edges().not(".open").remove();
      this.cy.add(this.arrowElements());
    });
    this.choose(chosen, false);
  }

  lay(kind) {
    this.kind = kind;
    const { places, circles } = this.places();
    this.cy.resize();
    this.cy.batch(() => {
      this.cy.nodes(".group").remove();
      this.cy.add(this.groupElements(circles));
      for (let k = 0; k < this.model.states; k++) this.node(k).position(places[k]);
    });
    this.fit();
  }

  node(k) {
    return this.cy.getElementById(id(k));
  }

  // Chooses a state: its arrows come to the front, all that is not next to it goes back.
  choose(k, move = true) {
    this.cy.batch(() => {
      this.cy.elements(".chosen").removeClass("chosen");
      this.cy.edges(".near").removeClass("near");
      this.cy.edges(".extra").remove();
      this.cy.elements(".faint").removeClass("faint");
      this.chosen = k;
      if (k < 0) return;
      const node = this.node(k);
      if (this.straight && this.only < 0 && !this.best) { // arrows that were too many to be drawn
        for (const arrow of this.arrows) {
          if ((arrow.from !== k && arrow.to !== k) || this.cy.getElementById(`${arrow.from}-${arrow.to}`).nonempty()) continue;
          this.cy.add(this.arrowElement(arrow, "extra"));
        }
      }
      node.addClass("chosen");
      const near = node.connectedEdges().addClass("near");
      this.cy.elements().not(near).not(near.connectedNodes()).not(node).addClass("faint");
    });
    if (k >= 0 && move) this.reveal(k);
  }

  // Moves only as far as needed; from far away a state is looked at from near.
  reveal(k) {
    const node = this.node(k);
    const at = node.renderedPosition();
    const margin = 40;
    const inside = at.x > margin && at.y > margin && at.x < this.cy.width() - margin && at.y < this.cy.height() - margin;
    if (this.many && this.cy.zoom() < 0.3) {
      this.cy.fit(node.closedNeighborhood(), 60);
      if (this.cy.zoom() > 1) this.cy.zoom(1), this.cy.center(node.closedNeighborhood());
      return;
    }
    const zoom = this.cy.zoom() < 0.3 ? 0.9 : this.cy.zoom();
    if (inside && zoom === this.cy.zoom()) return;
    this.cy.zoom(zoom);
    this.cy.center(node);
  }

  // Shows a set of states (what became of a cluster, say); null: all again.
  highlight(set) {
    this.cy.batch(() => {
      this.cy.elements(".faint").removeClass("faint");
      if (!set) return;
      for (let k = 0; k < this.model.states; k++) if (!set.has(k)) this.node(k).addClass("faint");
      this.cy.edges().forEach((edge) => {
        if (!set.has(Number(edge.source().id().slice(1)))) edge.addClass("faint");
      });
    });
    if (!set) this.choose(this.chosen, false);
  }

  now(k) {
    this.cy.nodes(".now").removeClass("now");
    if (k >= 0) this.node(k).addClass("now");
  }

  fit() {
    this.cy.fit(undefined, PADDING);
    if (this.cy.zoom() > ZOOM_FIT) this.cy.zoom(ZOOM_FIT), this.cy.center();
  }

  zoom(factor) {
    this.cy.zoom({ level: this.cy.zoom() * factor, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }

  pan(x, y) {
    this.cy.panBy({ x, y });
  }

  // The nearest state in a direction, seen from the chosen one.
  toward(dx, dy) {
    if (this.chosen < 0) return 0;
    const from = this.node(this.chosen).position();
    let best = -1, least = Infinity;
    for (let k = 0; k < this.model.states; k++) {
      const at = this.node(k).position();
      const along = (at.x - from.x) * dx + (at.y - from.y) * dy;
      const aside = Math.abs((at.x - from.x) * dy) + Math.abs((at.y - from.y) * dx);
      if (along <= 1 || along + 2.5 * aside >= least) continue;
      least = along + 2.5 * aside;
      best = k;
    }
    return best;
  }
}
