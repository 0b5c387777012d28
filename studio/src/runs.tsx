// The list of runs: live, with its filters in the address.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, post } from "./api";
import type { ApiError } from "./api";
import { Excerpts } from "./excerpts";
import { asError, useLoad } from "./hooks";
import { Labels } from "./labels";
import { Badge, Problem, Skeleton } from "./parts";
import { Period } from "./period";
import { go, href, setQuery, usePlace, useScrollBack } from "./router";
import { SEARCHED, STATUSES, useRuns } from "./runs_list";
import type { Filters } from "./runs_list";
import { Hidden, Text, count, duration, outcomeOf, time } from "./text";
import type { Run, Status, Task } from "./types";

function Row({
  run,
  isPicked,
  byConstraint,
  onPick,
}: {
  run: Run;
  isPicked: boolean;
  byConstraint: boolean;
  onPick: (isPicked: boolean) => void;
}): JSX.Element {
  const open = run.reviews?.open ?? 0;
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
        <Badge run={run} />
      </td>
      <th scope="row">
        <a href={href(["runs", run.id])}>
          <Text of={run.task} max={80} />
        </a>
        <div class="muted small">
          <Text of={run.instance === run.task ? run.id : run.title} max={80} />
        </div>
        <Labels of={run.labels} />
        <Excerpts of={run.found?.excerpts ?? []} />
      </th>
      {byConstraint && <td class="num">{count(run.found?.refused ?? 0)}</td>}
      <td class="num wide" title="Committed steps of the deepest trajectory">
        {run.proposals === 0 ? <span class="muted">not started</span> : count(run.steps)}
      </td>
      <td class="num wide" title="Lines proposed in all trajectories">
        {run.proposals === 0 ? "" : count(run.proposals)}
      </td>
      <td class="wide">
        {run.outcome !== null && <div>{outcomeOf(run.outcome)}</div>}
        {run.waiting_for !== undefined && <div class="muted small">waits for an agent</div>}
        {open > 0 && (
          <div class="small">
            <a class="flag" href={href(["review"], { run: run.id })}>
              {count(open)} to review
            </a>
          </div>
        )}
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
  if (filtered) return <p class="empty">No run matches these filters.</p>;
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

/** Most tasks that are offered for a part of a name. */
const OFFERED = 12;

/**
 * The filter by task. The daemon wants a whole name: of a part, the tasks that have it are offered.
 */
function TaskFilter({ task, slugs }: { task: string | undefined; slugs: string[] }): JSX.Element {
  const part = (task ?? "").toLowerCase();
  const found = slugs.filter((slug) => slug.includes(part));
  const isPart =
    task !== undefined && slugs.length > 0 && task !== "problem" && !slugs.includes(task);
  const choose = (typed: string) => {
    const given = typed.trim();
    const fitting = slugs.filter((slug) => slug.includes(given.toLowerCase()));
    const [only] = fitting;
    setQuery({
      task: !slugs.includes(given) && fitting.length === 1 && only !== undefined ? only : given,
    });
  };
  return (
    <>
      <label>
        Task
        <input
          type="search"
          placeholder="all"
          key={task}
          list="task-names"
          defaultValue={task ?? ""}
          onChange={(event) => choose(event.currentTarget.value)}
        />
        <Hidden of={task ?? ""} />
      </label>
      <datalist id="task-names">
        {slugs.map((slug) => (
          <option key={slug} value={slug} />
        ))}
      </datalist>
      {isPart && (
        <p class="offer" role="status">
          No task is named <Text of={task} max={80} />
          {found.length === 0
            ? "; only runs of tasks that are no longer here can fit."
            : ". Tasks with this in their name: "}
          {found.slice(0, OFFERED).map((slug) => (
            <button key={slug} class="link" onClick={() => setQuery({ task: slug })}>
              {slug}
            </button>
          ))}
          {found.length > OFFERED && `and ${count(found.length - OFFERED)} more; type more of it.`}
        </p>
      )}
    </>
  );
}

const ORDERS = [
  ["", "newest first"],
  ["created", "oldest first"],
  ["-steps", "most steps"],
  ["steps", "fewest steps"],
  ["-tokens", "most tokens"],
  ["tokens", "fewest tokens"],
  ["-duration", "longest"],
  ["duration", "shortest"],
] as const;

/** Filters that are seldom needed. */
const MORE = [
  ["agent", "Agent", "text", "name"],
  ["model", "Model", "text", "name"],
  ["outcome", "Outcome", "text", "such as agreed"],
  ["constraint", "Refused by", "text", "constraint"],
  ["label", "Label", "text", "name or name:value"],
  ["key", "Key", "text", "name, or * for all"],
  ["steps_min", "Steps from", "number", "0"],
  ["steps_max", "Steps to", "number", "any"],
  ["tokens_min", "Tokens from", "number", "0"],
  ["tokens_max", "Tokens to", "number", "any"],
] as const;

/** Pause after a key before runs are searched. */
const TYPING_MS = 300;

/** The text to search for: it is searched while it is typed, and at once with the enter key. */
function Find({ q }: { q: string }): JSX.Element {
  const [text, setText] = useState(q);
  const timer = useRef(0);
  // The address may change by other ways than this field.
  const asked = useRef(q);
  useEffect(() => {
    if (q === asked.current) return;
    asked.current = q;
    setText(q);
  }, [q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const search = (typed: string) => {
    clearTimeout(timer.current);
    if (typed.trim() === asked.current) return;
    asked.current = typed.trim();
    setQuery({ q: asked.current }, true);
  };
  return (
    <>
      <input
        type="search"
        name="q"
        placeholder="Search id, input, answer and lines"
        maxLength={400}
        value={text}
        onInput={(event) => {
          const typed = event.currentTarget.value;
          setText(typed);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => search(typed), TYPING_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") search(event.currentTarget.value);
        }}
      />
      <Hidden of={text} />
    </>
  );
}

/** The search, which is in the address like all filters. */
function Search({ place }: { place: URLSearchParams }): JSX.Element {
  const isUsed = [...MORE.map(([name]) => name), "since", "before"].some((name) => place.has(name));
  return (
    <>
      <div class="filters" role="search">
        <label class="find">
          <span class="hidden">Search</span>
          <Find q={place.get("q") ?? ""} />
        </label>
        <label>
          Order
          <select
            value={place.get("sort") ?? ""}
            onChange={(event) => setQuery({ sort: event.currentTarget.value })}
          >
            {ORDERS.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <details class="more" open={isUsed}>
        <summary>More filters</summary>
        <div class="filters" role="group" aria-label="More filters">
          {MORE.map(([name, title, type, placeholder]) => (
            <label key={name}>
              {title}
              <input
                type={type}
                min={type === "number" ? 0 : undefined}
                placeholder={placeholder}
                key={place.get(name)}
                defaultValue={place.get(name) ?? ""}
                onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
              />
            </label>
          ))}
          <Period place={place} />
        </div>
      </details>
    </>
  );
}

export function Runs(): JSX.Element {
  const place = usePlace().query;
  const [asked, task, needs_review] = ["status", "task", "needs_review"].map(
    (name) => place.get(name) ?? undefined,
  );
  const searched = Object.fromEntries(
    SEARCHED.map((name) => [name, place.get(name) ?? undefined]),
  ) as Filters;
  const isStatus = asked === undefined || STATUSES.includes(asked as Status);
  const status = isStatus ? asked : undefined;
  const [picked, setPicked] = useState<string[]>([]);
  const pick = (id: string, isPicked: boolean) =>
    setPicked((old) =>
      [...old.filter((other) => other !== id), ...(isPicked ? [id] : [])].slice(-2),
    );
  const { runs, unreadable, next, error, isLoading, isIncomplete, isBack, more, reload } = useRuns({
    ...searched,
    status,
    task,
    needs_review: needs_review === "true" ? "true" : undefined,
  });
  const tasks = useLoad("tasks", (signal) => get<{ tasks: Task[] }>("/v1/tasks", signal));
  const filtered = [status, task, needs_review, ...Object.values(searched)].some(
    (filter) => filter !== undefined,
  );
  useScrollBack(isBack);
  return (
    <main>
      <div class="title">
        <h1>Runs</h1>
        <a class="button primary" href={href(["runs", "new"])}>
          New run
        </a>
      </div>
      <Search place={place} />
      <div class="filters" role="group" aria-label="Filters">
        <label>
          Status
          <select
            value={status ?? ""}
            onChange={(event) => setQuery({ status: event.currentTarget.value })}
          >
            <option value="">all</option>
            {STATUSES.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <TaskFilter task={task} slugs={tasks.data?.tasks.map(({ slug }) => slug) ?? []} />
        <label class="check">
          <input
            type="checkbox"
            checked={needs_review === "true"}
            onChange={(event) =>
              setQuery({ needs_review: event.currentTarget.checked ? "true" : null })
            }
          />
          needs review
        </label>
        {picked.length === 2 ? (
          <a class="button" href={href(["compare"], { a: picked[0], b: picked[1] })}>
            Compare the two
          </a>
        ) : (
          <span class="muted">
            {picked.length === 1 ? "To compare, tick another run" : "To compare, tick two runs"}
          </span>
        )}
      </div>
      {!isStatus && (
        <p class="problem" role="alert">
          No run has the status <Text of={asked} max={80} />, which is in the address. These are all
          runs; the statuses are {STATUSES.join(", ")}.
        </p>
      )}
      {error && <Problem error={error} retry={reload} />}
      {isIncomplete && (
        <p class="muted" role="status">
          The daemon still looks through runs of an earlier version: some may be missing.
        </p>
      )}
      {runs === undefined && error === undefined && <Skeleton />}
      {runs?.length === 0 && next === null && <Empty filtered={filtered} />}
      {runs !== undefined && runs.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Runs">
          <table>
            <thead>
              <tr>
                <th scope="col" class="pick">
                  <span class="hidden">Compare</span>
                </th>
                <th scope="col">Status</th>
                <th scope="col">Task</th>
                {searched.constraint !== undefined && (
                  <th scope="col" class="num">
                    Lines refused by <Text of={searched.constraint} max={40} />
                  </th>
                )}
                <th scope="col" class="num wide">
                  Steps
                </th>
                <th scope="col" class="num wide">
                  Proposals
                </th>
                <th scope="col" class="wide">
                  Outcome
                </th>
                <th scope="col" class="wide">
                  Executor / verifier
                </th>
                <th scope="col" class="num wide">
                  Tokens
                </th>
                <th scope="col" class="num">
                  Time
                </th>
                <th scope="col" class="num wide">
                  Created
                </th>
              </tr>
            </thead>
            <tbody>
              {runs.map((run) => (
                <Row
                  key={run.id}
                  run={run}
                  isPicked={picked.includes(run.id)}
                  byConstraint={searched.constraint !== undefined}
                  onPick={(isPicked) => pick(run.id, isPicked)}
                />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {unreadable.map((id) => (
        <p key={id} class="muted">
          The row of run <Text of={id} max={80} /> cannot be read.
        </p>
      ))}
      <div class="below">
        {next !== null && (
          <button disabled={isLoading} onClick={more}>
            {isLoading ? "Loading…" : "Show more"}
          </button>
        )}
        {runs !== undefined && runs.length > 0 && (
          <span class="muted">
            {count(runs.length)} shown{next === null && ", which is all"}
          </span>
        )}
      </div>
    </main>
  );
}
