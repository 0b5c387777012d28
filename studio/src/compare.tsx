// Two runs side by side: what they cost, where each trajectory parts, and both steps at any place.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { aligned, isSame } from "./alignment";
import type { Row } from "./alignment";
import { get, query } from "./api";
import { causes } from "./causes";
import { Choice } from "./compare_choice";
import { decided } from "./decisions";
import { Differences, isUnchecked, modelsOf } from "./essentials";
import { sameJson } from "./exact";
import { useLoad } from "./hooks";
import { isOver } from "./live";
import { Badge, Panel, Problem, Skeleton } from "./parts";
import { href, setQuery, usePlace } from "./router";
import { differences } from "./spec";
import type { Spec } from "./spec";
import { StepView } from "./step_view";
import { Text, count, duration, some } from "./text";
import type { Comparison, Run, Step, StepList } from "./types";

/** Rows of the aligned steps, and how many of them stand before the chosen one. */
const ROWS = 13;
const BEFORE = 6;

/** Steps of a request. */
const PAGE = 1000;
/**
 * Rows after the first difference that are aligned: more would mean reading a long run to its end.
 */
const ALIGNED_MAX = 20_000;

function Aligned(props: {
  runs: [Run, Run];
  rows: Row[];
  from: number;
  at: number;
  onPick: (position: number) => void;
}): JSX.Element {
  const { runs, rows, from, at, onPick } = props;
  const cell = (step: Step | undefined, run: Run) => {
    if (step === undefined) return <td class="muted">no step here</td>;
    const { sign, word } = decided(step, isUnchecked(run));
    return (
      <td class={step.decision}>
        <span aria-hidden="true">{sign}</span>
        <span class="hidden">{word}</span>{" "}
        <code>
          <Text of={step.action || "(no line left)"} max={160} />
        </code>
      </td>
    );
  };
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Steps of both runs">
      <table class="aligned">
        <caption class="hidden">Steps of both runs, by what was committed</caption>
        <thead>
          <tr>
            <th scope="col" class="num">
              Row
            </th>
            <th scope="col">First run</th>
            <th scope="col">Second run</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ a, b }, row) => {
            const position = from + row;
            const differs = !isSame(a, b);
            return (
              <tr
                key={position}
                class={`${differs ? "differs" : ""} ${position === at ? "selected" : ""}`}
              >
                <th scope="row" class="num">
                  {differs && <span title="different">≠ </span>}
                  <button
                    class="link"
                    aria-pressed={position === at}
                    onClick={() => onPick(position)}
                  >
                    {count(position)}
                  </button>
                </th>
                {cell(a, runs[0])}
                {cell(b, runs[1])}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Costs({ a, b }: { a: Run; b: Run }): JSX.Element {
  const rows: [string, (run: Run) => JSX.Element | string][] = [
    ["Status", (run) => <Badge run={run} />],
    [
      "Answer",
      (run) => (
        <code>
          <Text of={run.answer ?? "none"} max={300} />
        </code>
      ),
    ],
    ["Votes", (run) => run.votes.map((ballot) => ballot.votes).join(" : ") || "none"],
    ["Executor", (run) => <Text of={run.agents.executor} max={60} />],
    ["Verifier", (run) => <Text of={run.agents.verifier} max={60} />],
    ["Coordinator", (run) => <Text of={run.agents.coordinator} max={60} />],
    ["Models", (run) => <Text of={modelsOf(run).join(", ") || "none"} max={300} />],
    ["Seed", (run) => String(run.seed)],
    ["Proposals", (run) => count(run.proposals)],
    ["Rejected", (run) => count(run.backtracks)],
    ["Sent back", (run) => count(run.retries)],
    ["Tokens", (run) => count(run.tokens.prompt + run.tokens.completion)],
    ["Time", (run) => duration(run.wall_ms)],
  ];
  if (a.tokens.cost !== undefined || b.tokens.cost !== undefined)
    rows.push(["Cost", (run) => (run.tokens.cost === undefined ? "" : count(run.tokens.cost))]);
  return (
    <div class="scroll costs" tabIndex={0} role="region" aria-label="Costs">
      <table>
        <thead>
          <tr>
            <td />
            {[a, b].map((run, at) => (
              <th scope="col" key={at}>
                {at === 0 ? "First run: " : "Second run: "}
                <a href={href(["runs", run.id])}>
                  <Text of={run.title} max={80} />
                </a>
                <div class="small id">{run.id}</div>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, of]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{of(a)}</td>
              <td>{of(b)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Steps of a run from a position on. */
async function stepsOf(
  run: Run,
  trajectory: string,
  from: number,
  most: number,
  signal: AbortSignal,
): Promise<Step[]> {
  const steps: Step[] = [];
  while (steps.length < most) {
    const limit = Math.min(PAGE, most - steps.length);
    const path = query(`/v1/runs/${encodeURIComponent(run.id)}/steps`, {
      trajectory,
      from: from + steps.length,
      limit,
    });
    const page = await get<StepList>(path, signal);
    if (page.steps.length === 0 && page.has_more !== true) break;
    steps.push(...page.steps);
  }
  return steps;
}

interface Window {
  rows: Row[];
  from: number;
  /** Rows of the trajectory as far as they are known. */
  total: number;
  /** True if rows after them are not aligned. */
  isCut: boolean;
}

/**
 * The rows around one. Before the first difference both runs have the same steps; from there on
 * they are aligned.
 */
async function rowsAround(
  props: { a: Run; b: Run; name: string; same: number; at: number; length: number },
  signal: AbortSignal,
): Promise<Window> {
  const { a, b, name, same, at, length } = props;
  const from = Math.max(0, at - BEFORE);
  const both = (start: number, most: number) =>
    Promise.all([stepsOf(a, name, start, most, signal), stepsOf(b, name, start, most, signal)]);
  const before = from < same ? await both(from, Math.min(ROWS, same - from)) : [[], []];
  const equal = aligned(before[0] ?? [], before[1] ?? []);
  // More than are shown, so that the end of what was read pairs nothing wrongly.
  const wanted = Math.min(ALIGNED_MAX, Math.max(PAGE, at - same + 2 * ROWS));
  const [left, right] = await both(same, wanted);
  const rest = aligned(left, right);
  const isEnd = left.length < wanted && right.length < wanted;
  const known = isEnd ? same + rest.length : Math.max(same + wanted, length);
  const rows = [...equal, ...rest.slice(Math.max(0, from - same))].slice(0, ROWS);
  return { rows, from, total: known, isCut: !isEnd && wanted === ALIGNED_MAX };
}

/** One trajectory of both, around a row, with both steps there in full. */
function Trajectory(props: {
  a: Run;
  b: Run;
  name: string;
  same: number;
  length: number;
}): JSX.Element {
  const { a, b, name, same, length } = props;
  const asked = usePlace().query.get("at");
  const at = Math.min(
    same + ALIGNED_MAX,
    asked === null ? Math.min(same, Math.max(0, length - 1)) : Math.max(0, Number(asked) || 0),
  );
  const both = useLoad(
    `${a.id} ${b.id} ${name} ${same} ${at}`,
    (signal) => rowsAround({ a, b, name, same, at, length }, signal),
    isOver(a) && isOver(b) ? 0 : 2000,
  );
  // While the next rows are on their way, the last ones stay.
  const last = useRef<Window>();
  if (both.data !== undefined) last.current = both.data;
  const shown = last.current;
  const total = shown?.total ?? length;
  // Where a run has no step in the row, its next one stands in: it was made in the same state.
  const below = shown?.rows.slice(at - shown.from) ?? [];
  const chosen = [below[0]?.a, below[0]?.b];
  const next = [
    below.find(({ a: step }) => step !== undefined)?.a,
    below.find(({ b: step }) => step !== undefined)?.b,
  ];
  const pick = (position: number) =>
    setQuery({ at: Math.max(0, Math.min(total - 1, position)) }, true);
  return (
    <>
      <Panel title={`Steps of trajectory ${name}`}>
        {both.error && <Problem error={both.error} retry={both.reload} />}
        {shown === undefined && both.error === undefined && <Skeleton />}
        {shown !== undefined && (
          <Aligned runs={[a, b]} rows={shown.rows} from={shown.from} at={at} onPick={pick} />
        )}
        {shown?.isCut === true && (
          <p class="muted">
            Only {count(ALIGNED_MAX)} rows after the first difference are set side by side. For what
            comes later, see the <a href={href(["runs", a.id], { t: name })}>first</a> and the{" "}
            <a href={href(["runs", b.id], { t: name })}>second run</a>.
          </p>
        )}
        <div class="actions">
          <button disabled={at === 0} onClick={() => pick(at - BEFORE)}>
            ‹ earlier
          </button>
          <button disabled={at >= total - 1} onClick={() => pick(at + BEFORE)}>
            later ›
          </button>
          {at !== same && same < length && (
            <button onClick={() => setQuery({ at: null }, true)}>To the first difference</button>
          )}
        </div>
      </Panel>
      {shown !== undefined && (
        <div class="side-by-side">
          {[a, b].map((run, side) => {
            const seq = next[side]?.seq;
            return (
              <Panel
                key={side}
                title={`Row ${count(at)} of the ${side === 0 ? "first" : "second"} run`}
              >
                {seq !== undefined && chosen[side] === undefined && (
                  <p class="muted">This run has no step in the row. Its next one:</p>
                )}
                {seq === undefined ? (
                  <p class="empty">No step here.</p>
                ) : (
                  <StepView run={run} seq={seq} of={side === 0 ? "first run" : "second run"} />
                )}
              </Panel>
            );
          })}
        </div>
      )}
    </>
  );
}

/** Says if the two had the same task, and in which settings they differ. */
function Settings({ a, b }: { a: Run; b: Run }): JSX.Element | null {
  const path = (run: Run) => `/v1/runs/${encodeURIComponent(run.id)}/spec`;
  const { data, error } = useLoad(`${path(a)} ${path(b)}`, (signal) =>
    Promise.all([get<Spec>(path(a), signal), get<Spec>(path(b), signal)]),
  );
  if (error) return <Problem error={error} />;
  if (data === undefined) return null;
  const [first, second] = data;
  const isOther = first.task !== second.task || !sameJson(first.input, second.input);
  const found = differences(first, second).filter(({ path: of }) => !of.startsWith("input"));
  return (
    <>
      {isOther && (
        <p class="problem" role="alert">
          These runs solved different {first.task === second.task ? "instances of a task" : "tasks"}
          : steps and costs of one say little about the other.
        </p>
      )}
      {found.length === 0 ? (
        <p class="muted">Their settings are the same.</p>
      ) : (
        <>
          <p>The second run has</p>
          <ul aria-label="What the second run has">
            {causes(found, second).map((said) => (
              <li key={said}>{said}</li>
            ))}
          </ul>
          <details>
            <summary>All that was recorded otherwise</summary>
            <Differences found={found} names={["First run", "Second run"]} />
          </details>
        </>
      )}
    </>
  );
}

export function Compare(): JSX.Element {
  const values = usePlace().query;
  const [a, b] = [values.get("a") ?? "", values.get("b") ?? ""];
  const run = (id: string) => `/v1/runs/${encodeURIComponent(id)}`;
  const path = query("/v1/compare", { a, b });
  const isAsked = a !== "" && b !== "";
  const [settled, setSettled] = useState("");
  const { data, error, reload } = useLoad(
    path,
    (signal) =>
      isAsked
        ? Promise.all([
            get<Comparison>(path, signal),
            get<Run>(run(a), signal),
            get<Run>(run(b), signal),
          ])
        : Promise.resolve(undefined),
    settled === path ? 0 : 2000,
  );
  // Two runs that are over, and compared to their ends, change no more.
  const isSettled = data !== undefined && !data[0].has_more && isOver(data[1]) && isOver(data[2]);
  useEffect(() => {
    if (isSettled) setSettled(path);
  }, [isSettled, path]);
  const comparison = data?.[0];
  const wanted = values.get("t");
  const nodes = comparison?.trajectories ?? [];
  const first = nodes.find((node) => node.seq_a !== null || node.seq_b !== null);
  const chosen =
    nodes.find((node) => `${node.round}.${node.trajectory}` === wanted) ?? first ?? nodes[0];
  const name = chosen === undefined ? "" : `${chosen.round}.${chosen.trajectory}`;
  return (
    <main>
      <div class="title">
        <h1>Compare two runs</h1>
      </div>
      {!isAsked && (
        <>
          <p class="muted">
            Choose two runs here or on the list of runs, or fork a run after one of its steps.
          </p>
          <Choice key={path} a={a} b={b} />
        </>
      )}
      {error && <Problem error={error} retry={reload} />}
      {isAsked && data === undefined && error === undefined && <Skeleton />}
      {data !== undefined && comparison !== undefined && (
        <>
          <Costs a={data[1]} b={data[2]} />
          <Settings a={data[1]} b={data[2]} />
          <Panel title="Where they part">
            {nodes.length === 0 && <p class="empty">They have no trajectory in common yet.</p>}
            <ul class="parts">
              {nodes.map((node) => {
                const label = `${node.round}.${node.trajectory}`;
                const isSame = node.seq_a === null && node.seq_b === null;
                return (
                  <li key={label}>
                    <button
                      class="node"
                      aria-pressed={label === name}
                      onClick={() => setQuery({ t: label, at: null })}
                    >
                      <span class="name">{label}</span>
                      {isSame
                        ? `the same in ${node.same === 1 ? "its only step" : `all ${count(node.same)} steps`}`
                        : `the same for ${some(node.same, "step")}, then different`}
                      <span class="muted small">
                        {count(node.steps_a)} and {count(node.steps_b)} steps
                      </span>
                    </button>
                  </li>
                );
              })}
            </ul>
          </Panel>
          {chosen !== undefined && (
            <Trajectory
              key={name}
              a={data[1]}
              b={data[2]}
              name={name}
              same={chosen.same}
              length={Math.max(chosen.steps_a, chosen.steps_b)}
            />
          )}
        </>
      )}
    </main>
  );
}
