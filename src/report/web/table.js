// Sorting and filtering of the table of latent states.
import { element } from "./base.js";

export function table(explorer) {
  const states = document.getElementById("states");
  if (!states) return;
  const body = states.tBodies[0];
  const rows = [...body.rows];
  const find = document.getElementById("find");
  const rewarding = document.getElementById("rewarding");
  const shown = document.getElementById("shown");

  function filter() {
    const wanted = find.value.trim();
    let count = 0;
    for (const row of rows) {
      const keep = (!wanted || row.dataset.k.startsWith(wanted)) &&
        (!rewarding || !rewarding.checked || Number(row.dataset.reward) !== 0);
      row.hidden = !keep;
      row.style.display = keep ? "" : "none";
      count += keep ? 1 : 0;
    }
    shown.textContent = count === rows.length ? `${rows.length} latent states`
      : `${count} of ${rows.length} latent states`;
  }

  function sort(head) {
    const key = head.dataset.sort;
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const cell of states.tHead.rows[0].cells) cell.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.sort((a, b) => {
      const difference = Number(a.dataset[key]) - Number(b.dataset[key]);
      return (down ? -difference : difference) || Number(a.dataset.k) - Number(b.dataset.k);
    });
    body.append(...rows);
  }

  for (const head of states.tHead.rows[0].cells) {
    if (!head.dataset.sort) continue;
    const button = element("button", { type: "button", text: head.textContent });
    head.textContent = "";
    head.append(button);
    button.addEventListener("click", () => sort(head));
  }
  find.addEventListener("input", filter);
  if (rewarding) rewarding.addEventListener("change", filter);
  document.getElementById("controls").hidden = false;
  shown.textContent = `${rows.length} latent states`;

  // from a row to the graph
  body.addEventListener("click", (event) => {
    const to = event.target.closest("a.to-graph");
    if (!to || !explorer) return;
    event.preventDefault();
    explorer.show(Number(to.closest("tr").dataset.k));
  });
}
