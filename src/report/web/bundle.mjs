// Bundles the page's script and style with the libraries they use: bundle.mjs FOLDER_OF_MODULES OUT.
// Leaves OUT/page.js, OUT/page.css and OUT/licences.txt, the licences of everything that went in.
import { createRequire } from "node:module";
import { existsSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const { buildSync } = createRequire(join(modules, "package.json"))("esbuild");

const made = buildSync({
  absWorkingDir: modules,
  entryPoints: { page: join(here, "main.js") },
  outdir: out,
  nodePaths: [join(modules, "node_modules")],
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none", // whole licences stand in licences.txt, which the page carries
  target: ["es2020"],
  format: "iife",
  metafile: true,
  logLevel: "warning",
});

// "node_modules/d3-force/src/x.js" and "node_modules/@dagrejs/dagre/x.js" → the package's folder
const packages = new Set();
for (const input of Object.keys(made.metafile.inputs)) {
  const found = input.match(/^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//);
  if (found) packages.add(found[1]);
}

let text = "";
for (const name of [...packages].sort()) {
  const folder = join(modules, "node_modules", name);
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
  if (!file || !existsSync(join(folder, file))) throw new Error(`${name} has no licence text`);
  text += `${name} ${about.version} (${about.license})\n\n`;
  text += readFileSync(join(folder, file), "utf8").trim() + "\n\n";
}
writeFileSync(join(out, "licences.txt"), text);

const script = readFileSync(join(out, "page.js"), "utf8");
if (/<\/script/i.test(script)) throw new Error("the script would end the element it stands in");
