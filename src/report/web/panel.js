// The panel of a state. What it shows stands in the table, too, where it is there without a script.
import { element } from "./base.js";

const PARTS = ["Size", "Sure", "Value", "By action", "Closest", "Observations"];

export function panel(box, explorer) {
  const title = element("h3", { id: "panel-title", tabindex: "-1" }, box);
  const body = element("div", {}, box);

  function showNothing() {
    title.textContent = "No latent state is chosen";
    body.replaceChildren(element("p", { class: "muted",
      text: "Click a circle, type its number into the search field, or move with the arrow keys once the graph has the focus." }));
  }

  function show(k) {
    const row = document.getElementById("s" + k);
    if (k < 0 || !row) return showNothing();
    title.textContent = "Latent state " + k;
    body.replaceChildren();
    const tags = row.querySelectorAll("td:first-child .tag");
    for (const tag of tags) body.append(tag.cloneNode(true));
    for (const part of PARTS) {
      const cell = [...row.cells].find((td) => td.dataset.name === part);
      if (!cell) continue;
      const box = element("div", { class: "part " + cell.className }, body);
      element("h4", { text: part }, box);
      for (const child of cell.childNodes) box.append(child.cloneNode(true));
    }
    const whole = element("a", { href: "#s" + k, text: "in the table" }, element("p", {}, body));
    whole.className = "to-table";
  }

  body.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#s']");
    if (!link || link.classList.contains("to-table")) return;
    event.preventDefault();
    explorer.choose(Number(link.getAttribute("href").slice(2)));
  });
  showNothing();
  return { show };
}
