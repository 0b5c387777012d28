// A page of a run that stands alone: no script, nothing loaded, every text of others as text.

import { prettyJson } from "./exact";
import { decided } from "./decisions";
import { isUnchecked, verdictOf } from "./essentials";
import { instanceOf } from "./spec";
import type { Spec } from "./spec";
import { count, duration, visible, words } from "./text";
import type { Run, Step, TrajectoryNode, Tree } from "./types";

/** Steps that a page has at most; it says so where a run has more. */
export const STEPS_MAX = 50_000;

/**
 * Steps of a table. A browser lays out a whole table at once, which takes many seconds for a long
 * run: more steps are in several tables, each closed at first.
 */
const TABLE_MAX = 1000;

/** Longest text of one value, in characters. */
const TEXT_MAX = 20_000;

export interface Steps {
  node: TrajectoryNode;
  steps: Step[];
}

export interface Saved {
  run: Run;
  spec: Spec;
  tree: Tree;
  steps: Steps[];
  /** Where the run was looked at. */
  address: string;
}

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Text for HTML: no markup, and signs for what cannot be seen. */
export function escaped(text: string, max = TEXT_MAX): string {
  return visible(text, max).replace(/[&<>"']/g, (one) => ENTITIES[one] ?? one);
}

/** Text with parts in backticks, which are shown as code. */
function quoted(text: string): string {
  const parts = visible(text).split("`");
  return parts
    .map((part, at) => (at % 2 === 1 ? `<code>${escaped(part)}</code>` : escaped(part)))
    .join("");
}

const STYLE = `
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 20px; }
h1 { font-size: 24px; } h2 { font-size: 18px; margin-top: 28px; }
pre, code { font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere; white-space: pre-wrap; }
pre { border: 1px solid; border-radius: 6px; padding: 8px; }
table { border-collapse: collapse; } th, td { text-align: left; vertical-align: top; padding: 2px 12px 2px 0; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
tr.retry td, tr.backtrack td { background: light-dark(#fdeceb, #331d1c); }
details { margin: 8px 0; } summary { cursor: pointer; }
@media print { details:not([open]) { display: none; } tr { break-inside: avoid; } }
`;

function rows(values: [string, string][]): string {
  return values
    .map(
      ([name, value]) => `<tr><th scope="row">${escaped(name)}</th><td>${escaped(value)}</td></tr>`,
    )
    .join("\n");
}

function tableOf(steps: Step[], unchecked: boolean): string {
  const lines = steps.map((step) => {
    const { sign, word } = decided(step, unchecked);
    return (
      `<tr class="${step.decision}"><td class="n">${step.position ?? ""}</td><td>${sign} ${word}</td>` +
      `<td><code>${escaped(step.action || "(no line left)")}</code></td>` +
      `<td>${escaped(step.violations.join(", "))}</td><td class="n">${step.score > 0 ? step.score : ""}</td></tr>`
    );
  });
  return `<table><thead><tr><th scope="col">Step</th><th scope="col">Decision</th><th scope="col">Line</th>
<th scope="col">Breaks</th><th scope="col">Score</th></tr></thead>
<tbody>
${lines.join("\n")}
</tbody></table>`;
}

/** Some steps of a longer trajectory, from a position on. */
function partOf(steps: Step[], from: number, unchecked: boolean): string {
  const refused = steps.filter(({ decision }) => decision !== "proceed").length;
  const of = `Steps ${count(from)} to ${count(from + steps.length - 1)}`;
  return `<details><summary>${of}, ${count(refused)} not accepted</summary>
${tableOf(steps, unchecked)}</details>`;
}

function trajectoryOf({ node, steps }: Steps, unchecked: boolean): string {
  const name = `${node.round}.${node.trajectory}`;
  const ending = node.end === null ? "no end" : words(node.end.end);
  const starts = Array.from(
    { length: Math.ceil(steps.length / TABLE_MAX) },
    (_, at) => at * TABLE_MAX,
  );
  const parts = starts.map((from) => partOf(steps.slice(from, from + TABLE_MAX), from, unchecked));
  const cut =
    steps.length < node.steps
      ? `<p>The first ${count(steps.length)} of ${count(node.steps)} steps; the trace has all.</p>`
      : "";
  return `<details><summary>Trajectory ${name}: ${escaped(ending)}, ${count(node.depth)} committed of ${count(node.steps)} proposed</summary>
${cut}${parts.length > 1 ? parts.join("\n") : tableOf(steps, unchecked)}</details>`;
}

function questionOf(spec: Spec): string {
  const { statement, input } = spec.input as { statement?: string; input?: unknown };
  if (spec.task !== "problem")
    return `<p>Task <code>${escaped(spec.task)}</code>.</p><pre>${escaped(prettyJson(spec.input))}</pre>`;
  const data = input == null ? "" : `<pre>${escaped(prettyJson(input))}</pre>`;
  return `<p>${escaped(statement ?? "")}</p>${data}`;
}

/** The page, as one file. */
export function pageOf({ run, spec, tree, steps, address }: Saved): string {
  const instance = instanceOf(spec) === undefined ? run.id : run.instance;
  const title = escaped(`${instance}: ${words(run.status)}`, 200);
  const facts: [string, string][] = [
    ["Run", run.id],
    ["Status", words(run.status)],
    ["Created", run.created_at],
    ["Executor", run.agents.executor],
    ["Verifier", run.agents.verifier],
    ["Coordinator", run.agents.coordinator],
    [
      "Engines",
      Object.entries(run.engines ?? {})
        .map(([name, digest]) => `${name} ${digest ?? ""}`)
        .join(", ") || "none",
    ],
    ["Seed", String(spec.sampling.seed)],
    ["Configuration", spec.config_hash],
    ["Proposals", count(run.proposals)],
    ["Rejected", count(run.backtracks)],
    ["Sent back", count(run.retries)],
    ["Undone", count(run.pops)],
    ["Tokens", count(run.tokens.prompt + run.tokens.completion)],
    ...(run.tokens.cost === undefined
      ? []
      : [["Cost", count(run.tokens.cost)] satisfies [string, string]]),
    ["Time", duration(run.wall_ms)],
  ];
  const left_out =
    tree.left_out > 0
      ? `<p>${count(tree.left_out)} earlier trajectories are not here; the trace has all.</p>`
      : "";
  const votes = run.votes.map(
    (ballot) =>
      `<li>${count(ballot.votes)}: <code>${escaped(prettyJson(ballot.answer))}</code></li>`,
  );
  const unchecked = isUnchecked(run);
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${title}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p>${quoted(verdictOf(run))}</p>
<h2>Question</h2>
${questionOf(spec)}
<h2>Answer</h2>
<pre>${run.answer === null ? "none" : escaped(prettyJson(run.answer))}</pre>
${votes.length > 0 ? `<p>Votes:</p><ol>${votes.join("")}</ol>` : ""}
<h2>Settings and counts</h2>
<table>
${rows(facts)}
</table>
<details><summary>Every setting</summary><pre>${escaped(prettyJson({ agents: spec.recorded, plan: spec.plan, sampling: spec.sampling }), 200_000)}</pre></details>
<h2>Steps</h2>
${left_out}
${steps.map((one) => trajectoryOf(one, unchecked)).join("\n")}
<p>Saved from ${escaped(address)}.</p>
</main>
</body>
</html>
`;
}
