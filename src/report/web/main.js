// The page's script. The page says everything important without it.
import "./page.css";
import { explorer } from "./explorer.js";
import { stages } from "./stages.js";
import { table } from "./table.js";

const found = explorer();
table(found);
stages();
