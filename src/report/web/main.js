// The page's script. The page says everything important without it.
import "./page.css";
import { compare } from "./compare.js";
import { explorer } from "./explorer.js";
import { episodes } from "./episodes.js";
import { stages } from "./stages.js";
import { table } from "./table.js";
import { tree } from "./tree.js";

for (const note of document.querySelectorAll(".static-note")) note.remove();
const found = explorer();
table(found);
stages();
episodes(found);
tree(found);
compare(found);
