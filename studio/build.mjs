// Builds dist/ from src/. The same sources give the same bytes.

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { build } from "esbuild";

const { version } = JSON.parse(await readFile(new URL("node_modules/preact/package.json", import.meta.url), "utf8"));
const folder = (name) => new URL(`${name}/`, import.meta.url).pathname;

await mkdir(folder("dist"), { recursive: true });
await build({
  absWorkingDir: folder("."),
  entryPoints: { studio: "src/main.tsx" },
  outdir: "dist",
  bundle: true,
  minify: true,
  target: "es2022",
  format: "iife",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  banner: { js: `/*! Includes Preact ${version}, MIT, Copyright (c) 2015-present Jason Miller: see studio/LICENSES.md */` },
});
await build({ absWorkingDir: folder("."), entryPoints: { studio: "src/styles.css" }, outdir: "dist", minify: true, charset: "utf8" });
await copyFile(new URL("src/icon.svg", import.meta.url), new URL("dist/icon.svg", import.meta.url));
await writeFile(new URL("dist/index.html", import.meta.url), await readFile(new URL("src/index.html", import.meta.url)));
