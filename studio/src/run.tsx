// A run: what was asked and what came out, its trajectories, and a step of one of them.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post, query } from "./api";
import type { ApiError } from "./api";
import { Approvals } from "./approvals";
import { Essentials, isUnchecked, useSpec } from "./essentials";
import { asError, useGrowing, useLoad } from "./hooks";
import { isOver, useLive } from "./live";
import { Overview } from "./overview";
import { Badge, Copy, Panel, Problem, Skeleton } from "./parts";
import { Replay } from "./replay";
import { Retry } from "./retry";
import { href, setQuery, usePlace } from "./router";
import { SaveMenu } from "./save";
import { asCurl, asPython } from "./snippets";
import { StepList } from "./step_list";
import { StepSearch } from "./step_search";
import { StepView } from "./step_view";
import { Long, Text, count, duration, some, time, visible, words } from "./text";
import { Tree, nameOf } from "./tree";
import type {
  Run as Record,
  Shape,
  StepList as Steps,
  TrajectoryNode,
  Tree as TreeData,
} from "./types";
import { WritingNow } from "./writing";

/** Events that the tree may lack before the page says so. */
const BEHIND = 50_000;
/** Pauses between two looks at a run under way: at its trajectories, and at the course of one. */
const TREE_MS = 1600;
const COURSE_MS = 6000;

function Votes({ run }: { run: Record }): JSX.Element | null {
  if (run.votes.length === 0) return null;
  const all = run.votes.reduce((sum, ballot) => sum + ballot.votes, 0);
  const lead = (run.votes[0]?.votes ?? 0) - (run.votes[1]?.votes ?? 0);
  return (
    <Panel title={`Votes: the winner leads by ${lead}`}>
      <ol class="votes">
        {run.votes.map((ballot, at) => (
          <li key={at}>
            <meter
              min={0}
              max={all}
              value={ballot.votes}
              aria-label={`${ballot.votes} of ${all} votes`}
            />
            <span class="num">{ballot.votes}</span>
            <code>
              <Long of={ballot.answer} max={600} />
            </code>
            <span class="muted small">
              {some(ballot.distinct_traces, "distinct trace")}, violation score{" "}
              {ballot.violation_score}
            </span>
          </li>
        ))}
      </ol>
    </Panel>
  );
}

/** Ending a run cannot be taken back: the button asks first. */
function Cancel({ run }: { run: Record }): JSX.Element {
  const [asks, setAsks] = useState(false);
  const [error, setError] = useState<ApiError>();
  const cancel = async () => {
    setAsks(false);
    setError(undefined);
    try {
      await post(`/v1/runs/${encodeURIComponent(run.id)}/cancel`);
    } catch (reason) {
      setError(asError(reason));
    }
  };
  return (
    <>
      {!asks && <button onClick={() => setAsks(true)}>Cancel</button>}
      {asks && (
        <span class="asks" role="group" aria-label="Cancel the run?">
          Cancel it for good?
          <button class="danger" ref={(button) => button?.focus()} onClick={() => void cancel()}>
            Yes, cancel the run
          </button>
          <button onClick={() => setAsks(false)}>No</button>
        </span>
      )}
      {error && <Problem error={error} />}
    </>
  );
}

function Actions({ run }: { run: Record }): JSX.Element {
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const open = run.reviews?.open ?? 0;
  return (
    <div class="actions">
      {!isOver(run) && <Cancel run={run} />}
      <a class="button" href={href(["runs", "new"], { from: run.id })}>
        Run again
      </a>
      {isOver(run) && <Retry key={run.id} run={run} />}
      <a
        class="button"
        href={href(["compare"], {
          a: run.forked_from?.run ?? run.id,
          b: run.forked_from ? run.id : null,
        })}
      >
        {run.forked_from ? "Compare with its parent" : "Compare"}
      </a>
      {run.reviews !== undefined && (
        <a class="button" href={href(["review"], { run: run.id })}>
          {open > 0 ? `Review ${some(open, "step")}` : "Reviewed steps"}
        </a>
      )}
      <SaveMenu run={run} />
      <Copy label="Copy as curl" text={() => asCurl("GET", path)} />
      <Copy label="Copy as Python" text={() => asPython("GET", path)} />
    </div>
  );
}

/** For somebody who sees a run for the first time. */
function Explained(): JSX.Element {
  return (
    <details class="explained">
      <summary>How to read this page</summary>
      <p>
        Several <em>trajectories</em> try the task, each by itself, one line at a time. The{" "}
        <em>executor</em> proposes a line. The <em>verifier</em> says which constraints of the task
        it would break; their weights add up to its <em>score</em>, and 0 is clean. The{" "}
        <em>coordinator</em> then accepts the line, sends it back to be tried again, or rejects it.
        Only an accepted line is committed and changes the state. When nothing is left to try in a
        state, the last committed steps are undone. In the end the trajectories vote on the answer.
      </p>
    </details>
  );
}

function Counts({ run, isLive }: { run: Record; isLive: boolean }): JSX.Element {
  const figures = [
    [isLive ? "Committed so far" : "Steps of the answer", count(run.steps)],
    ["Proposals", count(run.proposals)],
    ["Rejected", count(run.backtracks)],
    ["Sent back", count(run.retries)],
    ["Undone", count(run.pops)],
    ["Tokens", count(run.tokens.prompt + run.tokens.completion)],
    ...(run.tokens.cost === undefined ? [] : ([["Cost", count(run.tokens.cost)]] as const)),
    ["Time", duration(run.wall_ms)],
    ["Events", count(run.events)],
  ] as const;
  return (
    <dl class="figures head">
      {figures.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/**
 * The trajectory that is shown where the address names none, and the step where it names none. Both
 * stay once they are
 * chosen: a page that is watched does not move by itself.
 */
function useFirstChoice(nodes: TrajectoryNode[], wanted: string | null, isSettled: boolean) {
  const trajectory = useRef<string>();
  const steps = useRef(new Map<string, number>());
  const named = nodes.find((one) => nameOf(one) === (wanted ?? trajectory.current));
  const node = named ?? nodes.find((one) => one.first_rejected !== null) ?? nodes[0];
  const name = node === undefined ? "" : nameOf(node);
  const step = steps.current.get(name) ?? node?.first_rejected ?? 0;
  if (node !== undefined && node.steps > 0 && isSettled) {
    trajectory.current ??= name;
    steps.current.set(name, step);
  }
  return { node, name, step };
}

function RunPage({ run }: { run: Record }): JSX.Element {
  const place = usePlace();
  const asked_for = useSpec(run.id);
  const path = `/v1/runs/${encodeURIComponent(run.id)}`;
  const isLive = !isOver(run);
  const tree = useGrowing(
    `${path}/tree`,
    run.events,
    isLive,
    (signal) => get<TreeData>(`${path}/tree`, signal),
    TREE_MS,
  );
  const nodes = tree.data?.rounds.flatMap(({ trajectories }) => trajectories) ?? [];
  const hasMore = tree.data?.has_more === true;
  const { node, name, step } = useFirstChoice(nodes, place.query.get("t"), isLive || !hasMore);
  const total = node?.steps ?? 0;
  const asked = place.query.get("at");
  const follows = isLive && place.query.get("follow") === "1";
  // A step that the daemon has not read yet is waited for.
  const isAhead = !follows && hasMore && Number(asked) >= total;
  const chosen = follows ? total - 1 : asked === null ? step : Math.max(0, Number(asked) || 0);
  const at = total === 0 || isAhead ? null : Math.min(total - 1, chosen);
  // A run under way is drawn more coarsely, because it is drawn again and again.
  const shapeKey = query(`${path}/shape`, { trajectory: name, cells: isLive ? 128 : 512 });
  const loadShape = (signal: AbortSignal) =>
    name === "" ? Promise.resolve({ steps: 0, columns: [] }) : get<Shape>(shapeKey, signal);
  const newest = useGrowing<Shape>(shapeKey, total, isLive, loadShape, COURSE_MS);
  // The coarse course stays until there is the fine one.
  const course = useRef<{ name: string; data: Shape }>();
  if (newest.data !== undefined) course.current = { name, data: newest.data };
  const shape = course.current?.name === name ? course.current.data : undefined;
  // The number of the newest step is in the tree; another one is looked up.
  const isNewest = follows && at !== null && at === total - 1;
  const oneKey = query(`${path}/steps`, { trajectory: name, from: at ?? 0, limit: 1 });
  const one = useLoad(isNewest ? "the newest" : oneKey, (signal) =>
    name === "" || isNewest
      ? Promise.resolve({ steps: [], total: 0, next: null })
      : get<Steps>(oneKey, signal),
  );
  const seq = isNewest ? (node?.last_seq ?? null) : (one.data?.steps[0]?.seq ?? null);
  // While the next step is looked up, the last one stays.
  const last = useRef<{ name: string; seq: number }>();
  if (seq !== null) last.current = { name, seq };
  const shown = last.current?.name === name ? last.current.seq : null;
  // A step that somebody goes to ends the following.
  const pick = (position: number, replace = false) =>
    setQuery({ t: name, at: position, follow: null }, replace);
  const [message, setMessage] = useState("");
  const find = async (what: string, backwards: boolean) => {
    const range = backwards ? { before: at ?? 0 } : { after: at ?? 0 };
    try {
      const found = await get<{ position: number | null }>(
        query(`${path}/find`, { trajectory: name, what, ...range }),
      );
      setMessage(
        found.position === null ? `No ${backwards ? "earlier" : "later"} step of this kind.` : "",
      );
      if (found.position !== null) pick(found.position);
    } catch (reason) {
      setMessage(asError(reason).message);
    }
  };
  const [tab, setTab] = useState("steps");
  const violations = [...new Set(Object.keys(node?.violations ?? {}))];
  const toSeq = async (wantedSeq: number) => {
    try {
      pick((await get<{ position: number }>(`${path}/steps/${wantedSeq}`)).position);
    } catch (reason) {
      setMessage(asError(reason).message);
    }
  };
  // Where a run ends while it is followed, its last step stays.
  const wasFollowing = place.query.get("follow") === "1" && !isLive;
  useEffect(() => {
    if (wasFollowing && total > 0) setQuery({ t: name, at: total - 1, follow: null }, true);
  }, [wasFollowing, total, name]);
  return (
    <>
      <Approvals run={run} />
      <Essentials run={run} asked={asked_for} again={place.query.get("again")} />
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
            <Overview
              columns={shape?.columns ?? []}
              steps={Math.max(total, shape?.steps ?? 0)}
              at={at}
              onPick={pick}
            />
            <Replay
              at={at}
              total={total}
              hasMore={hasMore}
              violations={violations}
              follows={isLive ? follows : undefined}
              onFollow={(on) =>
                setQuery(
                  on ? { t: name, at: null, follow: "1" } : { t: name, at, follow: null },
                  true,
                )
              }
              onPick={pick}
              onFind={(what, back) => void find(what, back)}
              message={message}
            />
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
              <Tree
                tree={tree.data as TreeData}
                isOver={isOver(run)}
                selected={name}
                onPick={(t) => setQuery({ t, at: null })}
              />
            </Panel>
            <Panel title={`Steps of trajectory ${name}`} class="col-steps">
              <StepSearch
                key={name}
                run={run.id}
                trajectory={name}
                total={total}
                at={at}
                violations={violations}
                onPick={(position) => (pick(position), setTab("step"))}
              />
              <StepList
                run={run.id}
                trajectory={name}
                total={total}
                at={at}
                unchecked={isUnchecked(run)}
                onPick={(position) => (pick(position), setTab("step"))}
              />
            </Panel>
            <Panel title={`Step ${count(at)} of trajectory ${name}`} class="col-step">
              {one.error && one.error.status !== 0 && (
                <Problem error={one.error} retry={one.reload} />
              )}
              {shown === null ? (
                <Skeleton />
              ) : (
                <StepView
                  run={run}
                  seq={shown}
                  onSeq={(wantedSeq) => void toSeq(wantedSeq)}
                  onPosition={pick}
                />
              )}
            </Panel>
          </div>
        </>
      )}
      <Votes run={run} />
      <Panel title="Counts">
        <Counts run={run} isLive={isLive} />
      </Panel>
      <Explained />
    </>
  );
}

export function Run({ id }: { id: string }): JSX.Element {
  const { run, error, lost, writing } = useLive(id);
  const title =
    run === undefined ? visible(id, 40) : `${words(run.status)}: ${visible(run.title, 60)}`;
  useEffect(() => {
    document.title = `${title} · prime-agents`;
  }, [title]);
  return (
    <main class="run">
      <nav class="crumbs" aria-label="Where you are">
        <a href={href(["runs"])}>Runs</a> › <Text of={run?.task ?? id} max={80} />
        {run?.forked_from && (
          <>
            {" "}
            › forked after event {count(run.forked_from.seq)} of{" "}
            <a href={href(["runs", run.forked_from.run])}>
              <Text of={run.forked_from.run} max={80} />
            </a>
          </>
        )}
        {run?.retry_of !== undefined && (
          <>
            {" "}
            › tries again{" "}
            <a href={href(["runs", run.retry_of])}>
              <Text of={run.retry_of} max={80} />
            </a>
          </>
        )}
      </nav>
      <div class="title">
        <h1>
          <Text of={run?.title ?? id} max={120} />
        </h1>
        {run && <Badge run={run} />}
        {run && !isOver(run) && lost === null && <span class="live">live</span>}
        {run && <span class="muted small">{time(run.created_at)}</span>}
        {(run?.resumed ?? 0) > 0 && <span class="muted small">resumed {run?.resumed}×</span>}
        {run && <Actions run={run} />}
      </div>
      {run?.waiting_for !== undefined && (
        <p class="problem">
          <Text of={run.waiting_for} />
        </p>
      )}
      {lost !== null && (
        <p class="lost" role="status">
          Not connected since {lost.toLocaleTimeString("en-GB")}; durable up to event{" "}
          {count(run?.events ?? 0)}. Trying again.
        </p>
      )}
      {error && <Problem error={error} />}
      {run === undefined && error === undefined && <Skeleton />}
      <WritingNow turns={writing} />
      {run !== undefined && <RunPage run={run} />}
    </main>
  );
}
