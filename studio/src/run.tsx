// A run: its record, its trajectories, and a step of one of them.

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { get, post, query } from "./api";
import type { ApiError } from "./api";
import { asError, useGrowing, useLoad } from "./hooks";
import { isOver, useLive } from "./live";
import { Overview } from "./overview";
import { Badge, Copy, Panel, Problem, Skeleton } from "./parts";
import { Replay } from "./replay";
import { href, setQuery, usePlace } from "./router";
import { asCurl, asPython } from "./snippets";
import { StepList } from "./step_list";
import { StepView } from "./step_view";
import { Quoted, Text, count, duration, time, words } from "./text";
import { Tree, nameOf } from "./tree";
import type { Run as Record, Shape, StepList as Steps, Tree as TreeData } from "./types";
import { WritingNow } from "./writing";

/** Events that the tree may lack before the page says so. */
const BEHIND = 50_000;

/** Why an answer is not verified. */
function unverified(run: Record): string {
  switch (run.assurance) {
    case "violated":
      return "a step broke a constraint, and the coordinator tolerated it";
    case "unchecked":
      return "nobody checked some of its steps";
    default:
      return "it is not verified";
  }
}

function verdictOf(run: Record): string {
  const [winner] = run.votes;
  const some = (number: number, one: string) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;
  const votes = winner === undefined ? "" : ` with ${some(winner.votes, "vote")} from ${some(run.trajectories, "trajectory").replace("ys", "ies")}`;
  switch (run.status) {
    case "queued":
      return run.waiting_for === undefined ? "Waiting for a place among the open runs." : "Waiting for an agent.";
    case "running":
      return "The agents are at work.";
    case "verified":
      return `Answered${votes}. The checks of \`${run.verifier}\` found every step clean, and they let no wrong answer of this task through.`;
    case "unrefuted":
      return `Answered${votes}. \`${run.verifier}\` found no fault in any step, which is no proof.`;
    case "unverified":
      return run.answer === null ? `No answer: ${words(run.outcome ?? "it ended")}.` : `Answered${votes}, but ${unverified(run)}.`;
    case "failed":
      return `Failed: ${run.failure ?? words(run.outcome ?? "")}`;
    case "cancelled":
      return "Cancelled; what was committed is kept.";
  }
}

function Votes({ run }: { run: Record }): JSX.Element | null {
  if (run.votes.length === 0) return null;
  const all = run.votes.reduce((sum, ballot) => sum + ballot.votes, 0);
  const lead = (run.votes[0]?.votes ?? 0) - (run.votes[1]?.votes ?? 0);
  return (
    <Panel title={`Votes: the winner leads by ${lead}`}>
      <ol class="votes">
        {run.votes.map((ballot, at) => (
          <li key={at}>
            <meter min={0} max={all} value={ballot.votes} aria-label={`${ballot.votes} of ${all} votes`} />
            <span class="num">{ballot.votes}</span>
            <code>
              <Text of={ballot.answer} max={600} />
            </code>
            <span class="muted small">
              {ballot.distinct_traces} distinct trace{ballot.distinct_traces === 1 ? "" : "s"}, violation score {ballot.violation_score}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

function Actions({ run }: { run: Record }): JSX.Element {
  const [error, setError] = useState<ApiError>();
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const cancel = async () => {
    setError(undefined);
    try {
      await post(`${path}/cancel`);
    } catch (reason) {
      setError(asError(reason));
    }
  };
  return (
    <>
      <div class="actions">
        {!isOver(run) && <button onClick={() => void cancel()}>Cancel</button>}
        <a class="button" href={href(["runs", "new"], { from: run.id })}>
          Run again
        </a>
        <a class="button" href={href(["compare"], { a: run.forked_from?.run ?? run.id, b: run.forked_from ? run.id : null })}>
          {run.forked_from ? "Compare with its parent" : "Compare"}
        </a>
        <Copy label="Copy as curl" text={() => asCurl("GET", path)} />
        <Copy label="Copy as Python" text={() => asPython("GET", path)} />
      </div>
      {error && <Problem error={error} />}
    </>
  );
}

/** For somebody who sees a run for the first time. */
function Explained(): JSX.Element {
  return (
    <details class="explained">
      <summary>How to read this page</summary>
      <p>
        Several <em>trajectories</em> try the task, each by itself, one line at a time. The <em>executor</em> proposes a line. The{" "}
        <em>verifier</em> says which constraints of the task it would break; their weights add up to its <em>score</em>, and 0 is clean.
        The <em>coordinator</em> then accepts the line, sends it back to be tried again, or rejects it. Only an accepted line is committed
        and changes the state. When nothing is left to try in a state, the last committed steps are undone. In the end the trajectories
        vote on the answer.
      </p>
    </details>
  );
}

function RunPage({ run }: { run: Record }): JSX.Element {
  const place = usePlace();
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const isLive = !isOver(run);
  const tree = useGrowing(`${path}/tree`, run.events, isLive, (signal) => get<TreeData>(`${path}/tree`, signal));
  const nodes = tree.data?.rounds.flatMap(({ trajectories }) => trajectories) ?? [];
  const wanted = place.query.get("t");
  const node = nodes.find((one) => nameOf(one) === wanted) ?? nodes.find((one) => one.first_rejected !== null) ?? nodes[0];
  const name = node === undefined ? "" : nameOf(node);
  const total = node?.steps ?? 0;
  const asked = place.query.get("at");
  const hasMore = tree.data?.has_more === true;
  // A step that the daemon has not read yet is waited for.
  const isAhead = hasMore && Number(asked) >= total;
  const at = total === 0 || isAhead ? null : Math.min(total - 1, asked === null ? (node?.first_rejected ?? 0) : Math.max(0, Number(asked) || 0));
  const shapeKey = query(`${path}/shape`, { trajectory: name, cells: 512 });
  const shape = useGrowing<Shape>(shapeKey, total, isLive, (signal) =>
    name === "" ? Promise.resolve({ steps: 0, columns: [] }) : get<Shape>(shapeKey, signal),
  );
  const oneKey = query(`${path}/steps`, { trajectory: name, from: at ?? 0, limit: 1 });
  const one = useLoad(oneKey, (signal) => (name === "" ? Promise.resolve({ steps: [], total: 0, next: null }) : get<Steps>(oneKey, signal)));
  const seq = one.data?.steps[0]?.seq ?? null;
  // While the next step is looked up, the last one stays.
  const last = useRef<{ name: string; seq: number }>();
  if (seq !== null) last.current = { name, seq };
  const shown = last.current?.name === name ? last.current.seq : null;
  const pick = (position: number, replace = false) => setQuery({ t: name, at: position }, replace);
  const [message, setMessage] = useState("");
  const find = async (what: string, backwards: boolean) => {
    const range = backwards ? { before: at ?? 0 } : { after: at ?? 0 };
    const found = await get<{ position: number | null }>(query(`${path}/find`, { trajectory: name, what, ...range }));
    setMessage(found.position === null ? `No ${backwards ? "earlier" : "later"} step of this kind.` : "");
    if (found.position !== null) pick(found.position);
  };
  const [tab, setTab] = useState("steps");
  const agents = `${run.agents.executor} / ${run.agents.verifier} / ${run.agents.coordinator}`;
  const violations = [...new Set(Object.keys(node?.violations ?? {}))];
  const toSeq = async (wantedSeq: number) => {
    const detail = await get<{ position: number }>(`${path}/steps/${wantedSeq}`);
    pick(detail.position);
  };
  return (
    <>
      <dl class="figures head">
        {(
          [
            [isLive ? "Committed so far" : "Steps of the answer", count(run.steps)],
            ["Proposals", count(run.proposals)],
            ["Rejected", count(run.backtracks)],
            ["Sent back", count(run.retries)],
            ["Undone", count(run.pops)],
            ["Tokens", count(run.tokens.prompt + run.tokens.completion)],
            ["Time", duration(run.wall_ms)],
            ["Executor / verifier / coordinator", agents],
            ["Events", count(run.events)],
          ] as const
        ).map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>
              <Text of={value} max={200} />
            </dd>
          </div>
        ))}
      </dl>
      <Actions run={run} />
      <Explained />
      {tree.error && tree.error.status !== 0 && <Problem error={tree.error} />}
      {tree.data !== undefined && run.events - tree.data.indexed > BEHIND && (
        <p class="muted" role="status">
          Reading the run: {count(tree.data.indexed)} of {count(run.events)} events.
        </p>
      )}
      {((tree.data === undefined && tree.error === undefined) || isAhead) && <Skeleton />}
      {tree.data !== undefined && nodes.length === 0 && <p class="empty">No step yet.</p>}
      {node !== undefined && at !== null && (
        <>
          <Panel title={`Course of trajectory ${name}`} class="course">
            <Overview columns={shape.data?.columns ?? []} steps={shape.data?.steps ?? total} at={at} onPick={pick} />
            <Replay at={at} total={total} hasMore={hasMore} violations={violations} onPick={pick} onFind={(what, back) => void find(what, back)} message={message} />
          </Panel>
          <div class="tabs" role="group" aria-label="Columns">
            {["tree", "steps", "step"].map((one) => (
              <button key={one} aria-pressed={tab === one} onClick={() => setTab(one)}>
                {one === "tree" ? "Trajectories" : one === "steps" ? "Steps" : "Step"}
              </button>
            ))}
          </div>
          <div class={`columns show-${tab}`}>
            <Panel title="Trajectories" class="col-tree">
              <Tree tree={tree.data as TreeData} isOver={isOver(run)} selected={name} onPick={(t) => setQuery({ t, at: null })} />
            </Panel>
            <Panel title={`Steps of trajectory ${name}`} class="col-steps">
              <StepList run={run.id} trajectory={name} total={total} at={at} onPick={(position) => (pick(position), setTab("step"))} />
            </Panel>
            <Panel title={`Step ${count(at)} of trajectory ${name}`} class="col-step">
              {one.error && one.error.status !== 0 && <Problem error={one.error} retry={one.reload} />}
              {shown === null ? (
                <Skeleton />
              ) : (
                <StepView run={run} seq={shown} onSeq={(wantedSeq) => void toSeq(wantedSeq)} onPosition={pick} />
              )}
            </Panel>
          </div>
        </>
      )}
      <Votes run={run} />
    </>
  );
}

export function Run({ id }: { id: string }): JSX.Element {
  const { run, error, lost, writing } = useLive(id);
  return (
    <main class="run">
      <nav class="crumbs" aria-label="Where you are">
        <a href={href(["runs"])}>Runs</a> › <Text of={run?.task ?? id} max={80} />
      </nav>
      <div class="title">
        <h1>
          <Text of={run?.instance ?? id} max={120} />
        </h1>
        {run && <Badge status={run.status} />}
        {run && !isOver(run) && lost === null && <span class="live">live</span>}
        {run && <span class="muted small">{time(run.created_at)}</span>}
        {(run?.resumed ?? 0) > 0 && <span class="muted small">resumed {run?.resumed}×</span>}
      </div>
      {run && (
        <p class="in-words">
          <Quoted text={verdictOf(run)} />
        </p>
      )}
      {run?.waiting_for !== undefined && <p class="problem"><Text of={run.waiting_for} /></p>}
      {lost !== null && (
        <p class="lost" role="status">
          Not connected since {lost.toLocaleTimeString("en-GB")}; durable up to event {count(run?.events ?? 0)}. Trying again.
        </p>
      )}
      {error && <Problem error={error} />}
      {run === undefined && error === undefined && <Skeleton />}
      <WritingNow turns={writing} />
      {run !== undefined && <RunPage run={run} />}
    </main>
  );
}
