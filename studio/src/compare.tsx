// Two runs side by side: what they cost, where each trajectory parts, and both steps at any place.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, query } from "./api";
import { useLoad } from "./hooks";
import { isOver } from "./live";
import { Badge, Panel, Problem, Skeleton } from "./parts";
import { go, href, setQuery, usePlace } from "./router";
import { DECISIONS } from "./step_list";
import { StepView } from "./step_view";
import { Text, count, duration } from "./text";
import type { Comparison, Run, RunList, Step, StepList } from "./types";

/** Rows of the aligned steps, and how many of them stand before the chosen one. */
const ROWS = 13;
const BEFORE = 6;

/** Which two runs: those of the list are offered, and any other can be named. */
function Choice({ a, b }: { a: string; b: string }): JSX.Element {
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const runs = useLoad("recent runs", (signal) => get<RunList>("/v1/runs?limit=50", signal));
  const field = (label: string, value: string, set: (value: string) => void) => (
    <label class="field">
      <span>{label}</span>
      <input list="recent-runs" spellcheck={false} placeholder="run_…" value={value} onInput={(event) => set(event.currentTarget.value)} />
    </label>
  );
  return (
    <form
      class="choice"
      onSubmit={(event) => {
        event.preventDefault();
        go(href(["compare"], { a: first.trim(), b: second.trim() }));
      }}
    >
      <datalist id="recent-runs">
        {runs.data?.runs.map((run) => (
          <option key={run.id} value={run.id}>
            {`${run.instance}, ${run.status}`}
          </option>
        ))}
      </datalist>
      {field("First run", first, setFirst)}
      {field("Second run", second, setSecond)}
      <button class="primary">Compare</button>
    </form>
  );
}

type Row = { position: number; steps: [Step | undefined, Step | undefined] };

function Aligned(props: { rows: Row[]; same: number; at: number; onPick: (position: number) => void }): JSX.Element {
  const { rows, same, at, onPick } = props;
  const cell = (step: Step | undefined) =>
    step === undefined ? (
      <td class="muted">no step</td>
    ) : (
      <td class={step.decision}>
        <span aria-hidden="true">{DECISIONS[step.decision].sign}</span>
        <span class="hidden">{DECISIONS[step.decision].word}</span>{" "}
        <code>
          <Text of={step.action || "(no line left)"} max={160} />
        </code>
      </td>
    );
  return (
    <table class="aligned">
      <caption class="hidden">Steps of both runs</caption>
      <thead>
        <tr>
          <th scope="col" class="num">
            Step
          </th>
          <th scope="col">First run</th>
          <th scope="col">Second run</th>
        </tr>
      </thead>
      <tbody>
        {rows.map(({ position, steps }) => (
          <tr key={position} class={`${position >= same ? "differs" : ""} ${position === at ? "selected" : ""}`}>
            <th scope="row" class="num">
              {position >= same && <span title="different">≠ </span>}
              <button class="link" aria-pressed={position === at} onClick={() => onPick(position)}>
                {count(position)}
              </button>
            </th>
            {cell(steps[0])}
            {cell(steps[1])}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Costs({ a, b }: { a: Run; b: Run }): JSX.Element {
  const rows: [string, (run: Run) => JSX.Element | string][] = [
    ["Status", (run) => <Badge status={run.status} />],
    ["Answer", (run) => <code><Text of={run.answer ?? "none"} max={300} /></code>],
    ["Votes", (run) => run.votes.map((ballot) => ballot.votes).join(" : ") || "none"],
    ["Executor", (run) => <Text of={run.agents.executor} max={60} />],
    ["Verifier", (run) => <Text of={run.agents.verifier} max={60} />],
    ["Coordinator", (run) => <Text of={run.agents.coordinator} max={60} />],
    ["Seed", (run) => String(run.seed)],
    ["Proposals", (run) => count(run.proposals)],
    ["Rejected", (run) => count(run.backtracks)],
    ["Sent back", (run) => count(run.retries)],
    ["Tokens", (run) => count(run.tokens.prompt + run.tokens.completion)],
    ["Time", (run) => duration(run.wall_ms)],
  ];
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
                  <Text of={run.instance} max={80} />
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

/** One trajectory of both, around a position, with both steps there in full. */
function Trajectory(props: { a: Run; b: Run; name: string; same: number; length: number }): JSX.Element {
  const { a, b, name, same, length } = props;
  const asked = usePlace().query.get("at");
  const at = Math.min(Math.max(0, length - 1), asked === null ? same : Math.max(0, Number(asked) || 0));
  const from = Math.max(0, at - BEFORE);
  const path = (run: Run) => query(`/v1/runs/${encodeURIComponent(run.id)}/steps`, { trajectory: name, from, limit: ROWS });
  const both = useLoad(`${path(a)} ${path(b)}`, (signal) =>
    Promise.all([get<StepList>(path(a), signal), get<StepList>(path(b), signal)]),
    isOver(a) && isOver(b) ? 0 : 2000,
  );
  const [left, right] = both.data?.map(({ steps }) => steps) ?? [];
  const rows: Row[] = Array.from({ length: Math.max(left?.length ?? 0, right?.length ?? 0) }, (_, row) => ({
    position: from + row,
    steps: [left?.[row], right?.[row]],
  }));
  const chosen = rows.find(({ position }) => position === at)?.steps ?? [undefined, undefined];
  const pick = (position: number) => setQuery({ at: Math.max(0, Math.min(length - 1, position)) }, true);
  return (
    <>
      <Panel title={`Steps of trajectory ${name}`}>
        {both.error && <Problem error={both.error} retry={both.reload} />}
        {both.data === undefined && both.error === undefined && <Skeleton />}
        {both.data !== undefined && <Aligned rows={rows} same={same} at={at} onPick={pick} />}
        <div class="actions">
          <button disabled={at === 0} onClick={() => pick(at - BEFORE)}>
            ‹ earlier
          </button>
          <button disabled={at >= length - 1} onClick={() => pick(at + BEFORE)}>
            later ›
          </button>
          {at !== same && same < length && <button onClick={() => setQuery({ at: null }, true)}>To the first difference</button>}
        </div>
      </Panel>
      {both.data !== undefined && (
        <div class="side-by-side">
          {[a, b].map((run, side) => {
            const seq = chosen[side]?.seq;
            return (
              <Panel key={side} title={`Step ${count(at)} of the ${side === 0 ? "first" : "second"} run`}>
                {seq === undefined ? <p class="empty">No step here.</p> : <StepView run={run} seq={seq} />}
              </Panel>
            );
          })}
        </div>
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
  const { data, error, reload } = useLoad(
    path,
    (signal) =>
      isAsked
        ? Promise.all([get<Comparison>(path, signal), get<Run>(run(a), signal), get<Run>(run(b), signal)])
        : Promise.resolve(undefined),
    2000,
  );
  const comparison = data?.[0];
  const wanted = values.get("t");
  const nodes = comparison?.trajectories ?? [];
  const first = nodes.find((node) => node.seq_a !== null || node.seq_b !== null);
  const chosen = nodes.find((node) => `${node.round}.${node.trajectory}` === wanted) ?? first ?? nodes[0];
  const name = chosen === undefined ? "" : `${chosen.round}.${chosen.trajectory}`;
  return (
    <main>
      <div class="title">
        <h1>Compare two runs</h1>
      </div>
      {!isAsked && (
        <>
          <p class="muted">Choose two runs here or on the list of runs, or fork a run after one of its steps.</p>
          <Choice key={path} a={a} b={b} />
        </>
      )}
      {error && <Problem error={error} retry={reload} />}
      {isAsked && data === undefined && error === undefined && <Skeleton />}
      {data !== undefined && comparison !== undefined && (
        <>
          <Costs a={data[1]} b={data[2]} />
          <Panel title="Where they part">
            {nodes.length === 0 && <p class="empty">They have no trajectory in common yet.</p>}
            <ul class="parts">
              {nodes.map((node) => {
                const label = `${node.round}.${node.trajectory}`;
                const isSame = node.seq_a === null && node.seq_b === null;
                return (
                  <li key={label}>
                    <button class="node" aria-pressed={label === name} onClick={() => setQuery({ t: label, at: null })}>
                      <span class="name">{label}</span>
                      {isSame ? `the same in all ${count(node.same)} steps` : `the same for ${count(node.same)} steps, then different`}
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
