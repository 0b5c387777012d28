// The list of runs: live, with its filters in the address.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, post, query } from "./api";
import { asError, useLoad } from "./hooks";
import { Badge, Problem, Skeleton } from "./parts";
import { go, href, setQuery, usePlace } from "./router";
import { Text, count, duration, time, words } from "./text";
import type { ApiError } from "./api";
import type { Run, RunList, Task } from "./types";

const PAGE = 50;
const STATUSES = ["queued", "running", "verified", "unrefuted", "unverified", "failed", "cancelled"];

function Row({ run, isPicked, onPick }: { run: Run; isPicked: boolean; onPick: (isPicked: boolean) => void }): JSX.Element {
  return (
    <tr>
      <td class="pick">
        <input
          type="checkbox"
          aria-label={`Compare ${run.id}`}
          checked={isPicked}
          onChange={(event) => onPick(event.currentTarget.checked)}
        />
      </td>
      <td>
        <Badge status={run.status} />
      </td>
      <th scope="row">
        <a href={href(["runs", run.id])}>
          <Text of={run.task} max={80} />
        </a>
        <div class="muted small">
          <Text of={run.instance === run.task ? run.id : run.instance} max={80} />
        </div>
      </th>
      <td class="num wide" title="Committed steps of the deepest trajectory">
        {run.proposals === 0 ? <span class="muted">not started</span> : count(run.steps)}
      </td>
      <td class="num wide" title="Lines proposed in all trajectories">
        {run.proposals === 0 ? "" : count(run.proposals)}
      </td>
      <td class="wide">
        {run.outcome === null ? "" : words(run.outcome)}
        {run.waiting_for !== undefined && <span class="muted small">waits for an agent</span>}
        {(run.reviews?.open ?? 0) > 0 && <span class="flag small">{count(run.reviews?.open ?? 0)} to review</span>}
      </td>
      <td class="wide muted">
        <Text of={`${run.agents.executor} / ${run.agents.verifier}`} max={80} />
      </td>
      <td class="num wide">{count(run.tokens.prompt + run.tokens.completion)}</td>
      <td class="num">{duration(run.wall_ms)}</td>
      <td class="num wide muted">
        <time dateTime={run.created_at}>{time(run.created_at)}</time>
      </td>
    </tr>
  );
}

function Empty({ filtered }: { filtered: boolean }): JSX.Element {
  const [error, setError] = useState<ApiError>();
  const start = async () => {
    try {
      const run = await post<Run>("/v1/runs", { task: "tower-of-hanoi", difficulty: "easy" });
      go(href(["runs", run.id]));
    } catch (reason) {
      setError(asError(reason));
    }
  };
  if (filtered) return <p class="empty">No run fits these filters.</p>;
  return (
    <div class="empty">
      <p>No runs yet. A run gives a task to your agents; every step they propose is checked.</p>
      <button class="primary" onClick={() => void start()}>
        Run an example: Tower of Hanoi
      </button>
      {error && <Problem error={error} />}
    </div>
  );
}

export function Runs(): JSX.Element {
  const filters = Object.fromEntries(usePlace().query);
  const { status, task, needs_review } = filters;
  const [pages, setPages] = useState(1);
  const [picked, setPicked] = useState<string[]>([]);
  const pick = (id: string, isPicked: boolean) =>
    setPicked((old) => [...old.filter((other) => other !== id), ...(isPicked ? [id] : [])].slice(-2));
  const address = query("/v1/runs", { status, task, needs_review, limit: Math.min(PAGE * pages, 1000) });
  const { data, error, reload } = useLoad(address, (signal) => get<RunList>(address, signal), 2000);
  const tasks = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
  const filtered = [status, task, needs_review].some((filter) => filter !== undefined);
  return (
    <main>
      <div class="title">
        <h1>Runs</h1>
        <a class="button primary" href={href(["runs", "new"])}>
          New run
        </a>
      </div>
      <div class="filters" role="group" aria-label="Filters">
        <label>
          Status
          <select value={status ?? ""} onChange={(event) => setQuery({ status: event.currentTarget.value })}>
            <option value="">all</option>
            {STATUSES.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Task
          <input
            type="search"
            placeholder="all"
            key={task}
            list="task-names"
            defaultValue={task ?? ""}
            onChange={(event) => setQuery({ task: event.currentTarget.value.trim() })}
          />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={needs_review === "true"}
            onChange={(event) => setQuery({ needs_review: event.currentTarget.checked ? "true" : null })}
          />
          needs review
        </label>
        <a class={picked.length === 2 ? "button" : "button off"} href={href(["compare"], { a: picked[0], b: picked[1] })}>
          {picked.length === 2 ? "Compare the two" : picked.length === 1 ? "Compare: tick another" : "Compare: tick two runs"}
        </a>
      </div>
      <datalist id="task-names">
        {tasks.data?.tasks.map(({ slug }) => <option key={slug} value={slug} />)}
      </datalist>
      {error && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Skeleton />}
      {data?.runs.length === 0 && <Empty filtered={filtered} />}
      {data !== undefined && data.runs.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Runs, newest first">
          <table>
            <thead>
              <tr>
                <th scope="col">
                  <span class="hidden">Compare</span>
                </th>
                <th scope="col">Status</th>
                <th scope="col">Task</th>
                <th scope="col" class="num wide">Steps</th>
                <th scope="col" class="num wide">Proposals</th>
                <th scope="col" class="wide">Outcome</th>
                <th scope="col" class="wide">Executor / verifier</th>
                <th scope="col" class="num wide">Tokens</th>
                <th scope="col" class="num">Time</th>
                <th scope="col" class="num wide">Created</th>
              </tr>
            </thead>
            <tbody>
              {data.runs.map((run) => (
                <Row key={run.id} run={run} isPicked={picked.includes(run.id)} onPick={(isPicked) => pick(run.id, isPicked)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {data?.unreadable?.map((id) => (
        <p key={id} class="muted">
          The row of run <Text of={id} max={80} /> cannot be read.
        </p>
      ))}
      <div class="below">
        {data?.next != null && <button onClick={() => setPages(pages + 1)}>Show more</button>}
      </div>
    </main>
  );
}
