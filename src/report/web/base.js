// What all parts of the page share: elements, colours, numbers in words, the embedded data.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c"];

// Colour k of the palette, the same as in the figures: Okabe and Ito's first, then hues far apart.
export function colour(k) {
  if (k < 0) return "#8c8c8c";
  if (k < PALETTE.length) return PALETTE[k];
  return `hsl(${Math.round((k * 137.508) % 360)}, 55%, ${k % 2 ? 45 : 62}%)`;
}

// Viridis in nine steps: equal steps look equal, to colour-blind people, too.
const SCALE = [
  [68, 1, 84], [71, 44, 122], [59, 81, 139], [44, 113, 142], [33, 144, 141],
  [39, 173, 129], [92, 200, 99], [170, 220, 50], [253, 231, 37],
];

export function shade(share) {
  const at = Math.max(0, Math.min(1, share || 0)) * (SCALE.length - 1);
  const below = Math.min(SCALE.length - 2, Math.floor(at));
  const part = at - below;
  const mixed = SCALE[below].map((v, i) => Math.round(v + part * (SCALE[below + 1][i] - v)));
  return `rgb(${mixed.join(",")})`;
}

// Names and texts only ever arrive through textContent: what others wrote stays text.
export function element(name, options = {}, parent = null) {
  const made = document.createElement(name);
  const { text, dataset, ...attributes } = options;
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, value);
  }
  if (dataset) Object.assign(made.dataset, dataset);
  if (parent) parent.append(made);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function drawn(name, attributes = {}, parent = null) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (parent) parent.append(made);
  return made;
}

export function labelled(words, control, parent) {
  const label = element("label", { text: words + " " }, parent);
  label.append(control);
  return control;
}

export function choice(words, options, parent, id) {
  const select = element("select", { id });
  for (const [value, text] of options) element("option", { value, text }, select);
  return labelled(words, select, parent);
}

export function data(id) {
  const source = document.getElementById(id);
  return source ? JSON.parse(source.textContent) : null;
}

export function share(part, whole) {
  return (100 * part / whole).toFixed(2) + " %";
}

export function number(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  return String(Number(value.toPrecision(4)));
}

export function percent(p) {
  return Number((100 * p).toPrecision(3)) + " %";
}

export const dark = window.matchMedia("(prefers-color-scheme: dark)");

// One style's colour, as the page has it now.
export function ink(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}
