// Two runs side by side: where each trajectory parts, and both steps there.

import type { JSX } from "preact";
import { get, query } from "./api";
import { useLoad } from "./hooks";
import { Badge, Panel, Problem, Skeleton } from "./parts";
import { href, setQuery, usePlace } from "./router";
import { DECISIONS } from "./step_list";
import { StepView } from "./step_view";
import { Text, count, duration } from "./text";
import type { Comparison, Run, Step, StepList } from "./types";

const AROUND = 6;

function Aligned(props: { a: string; b: string; trajectory: string; from: number; same: number }): JSX.Element {
  const { a, b, trajectory, from, same } = props;
  const path = (run: string) =>
    query(`/v1/runs/${encodeURIComponent(run)}/steps`, { trajectory, from, limit: 2 * AROUND });
  const both = useLoad(`${path(a)} ${path(b)}`, (signal) =>
    Promise.all([get<StepList>(path(a), signal), get<StepList>(path(b), signal)]),
  );
  if (both.error) return <Problem error={both.error} retry={both.reload} />;
  if (both.data === undefined) return <Skeleton />;
  const [left, right] = both.data.map(({ steps }) => steps);
  const length = Math.max(left?.length ?? 0, right?.length ?? 0);
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
          <th scope="col" class="num">Step</th>
          <th scope="col">First run</th>
          <th scope="col">Second run</th>
        </tr>
      </thead>
      <tbody>
        {Array.from({ length }, (_, at) => (
          <tr key={at} class={from + at >= same ? "differs" : ""}>
            <th scope="row" class="num">
              {from + at >= same && <span aria-hidden="true">≠ </span>}
              {count(from + at)}
            </th>
            {cell(left?.[at])}
            {cell(right?.[at])}
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
    ["Retries", (run) => count(run.retries)],
    ["Backtracks", (run) => count(run.backtracks)],
    ["Tokens", (run) => count(run.tokens.prompt + run.tokens.completion)],
    ["Time", (run) => duration(run.wall_ms)],
  ];
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Costs">
      <table>
        <thead>
          <tr>
            <td />
            {[a, b].map((run, at) => (
              <th scope="col" key={at}>
                <a href={href(["runs", run.id])}>
                  <Text of={run.instance} max={80} />
                </a>
                <div class="muted small">{run.id}</div>
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
  const at = Number(values.get("at") ?? chosen?.same ?? 0) || 0;
  return (
    <main>
      <div class="title">
        <h1>Compare two runs</h1>
      </div>
      {!isAsked && <p class="empty">Give two runs: on the list of runs, or by forking a run at a step.</p>}
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
            <>
              <Panel title={`Steps of ${name} around ${count(at)}`}>
                <Aligned a={a} b={b} trajectory={name} from={Math.max(0, at - AROUND)} same={chosen.same} />
                <div class="actions">
                  <button disabled={at === 0} onClick={() => setQuery({ at: Math.max(0, at - AROUND) }, true)}>‹ earlier</button>
                  <button onClick={() => setQuery({ at: at + AROUND }, true)}>later ›</button>
                </div>
              </Panel>
              <div class="side-by-side">
                {[
                  { id: a, task: data[1].task, seq: chosen.seq_a },
                  { id: b, task: data[2].task, seq: chosen.seq_b },
                ].map(({ id, task, seq }, side) => (
                  <Panel key={side} title={side === 0 ? "First different step: first run" : "First different step: second run"}>
                    {seq === null ? <p class="empty">No step here.</p> : <StepView run={id} task={task} seq={seq} onSeq={() => undefined} />}
                  </Panel>
                ))}
              </div>
            </>
          )}
        </>
      )}
    </main>
  );
}
