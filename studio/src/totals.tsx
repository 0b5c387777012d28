// What the runs in the journal add up to. Each number leads to the list of its runs.

import type { JSX } from "preact";
import { get, query } from "./api";
import { Bars } from "./bars";
import { useLoad } from "./hooks";
import { Missing, Panel, Table } from "./parts";
import { Period } from "./period";
import { href, setQuery, usePlace } from "./router";
import { Hidden, Text, count, duration, outcomeOf, percent, time, words } from "./text";
import type { Figures, NamedFigures, Totals as Found } from "./types";

/** What narrows the figures and the lists that they lead to. */
const FILTERS = ["since", "before", "task", "model", "label", "key"] as const;
type Filters = Partial<Record<(typeof FILTERS)[number] | "status" | "outcome" | "constraint", string>>;

/** The figures change slowly, and cost the daemon more than a page of a list. */
const EVERY_MS = 10_000;
/** Most days that are drawn. */
const DAYS = 60;
const DAY_MS = 86_400_000;

const FIELDS = [
  ["task", "Task", "all"],
  ["model", "Model", "all"],
  ["label", "Label", "name or name:value"],
  ["key", "Key", "name, or * for all"],
] as const;

const ENDS = ["verified", "unrefuted", "unverified", "failed", "cancelled"] as const;

/** What the tables show beside a name; figures begin with #. */
/** The column of bars. */
const RELATIVE = "Relative to the largest";

const COLUMNS = [
  "#Runs",
  RELATIVE,
  "#Verified",
  "#Of those over",
  "#Failed",
  "#Steps",
  "#Refused",
  "#Tokens",
  "#Run time",
];

/** A figure beside the largest of its column, as a bar. */
function Share({ of, most }: { of: number; most: number }): JSX.Element {
  return (
    <svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect width={(100 * of) / Math.max(1, most)} height={8} />
    </svg>
  );
}

/** A number with as many digits as tell something. */
function rate(of: number): string {
  return of.toLocaleString("en", { maximumSignificantDigits: 3 });
}

function Filter({ place }: { place: URLSearchParams }): JSX.Element {
  return (
    <div class="filters" role="group" aria-label="Filters">
      <Period place={place} />
      {FIELDS.map(([name, title, placeholder]) => (
        <label key={name}>
          {title}
          <input
            type="search"
            placeholder={placeholder}
            key={place.get(name)}
            defaultValue={place.get(name) ?? ""}
            onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
          />
          <Hidden of={place.get(name) ?? ""} />
        </label>
      ))}
    </div>
  );
}

function Head({ of, list }: { of: Figures; list: (more: Filters) => string }): JSX.Element {
  return (
    <>
      <dl class="figures head">
        <div>
          <dt>Runs</dt>
          <dd>
            <a href={list({})}>{count(of.runs)}</a>
          </dd>
        </div>
        {ENDS.map((status) => (
          <div key={status}>
            <dt>{words(status)}</dt>
            <dd>
              <a href={list({ status })}>{count(of[status])}</a>
            </dd>
          </div>
        ))}
        <div>
          <dt>open</dt>
          <dd>{count(of.open)}</dd>
        </div>
        <div>
          <dt>Verified of those that are over</dt>
          <dd>{of.verified_share === null ? "none is over" : percent(of.verified_share)}</dd>
        </div>
      </dl>
      <dl class="figures head">
        <div>
          <dt>Runs an hour</dt>
          <dd>{rate(of.runs_per_hour)}</dd>
        </div>
        <div>
          <dt>Steps an hour</dt>
          <dd>{rate(of.steps_per_hour)}</dd>
        </div>
        <div>
          <dt>Lines proposed</dt>
          <dd>{count(of.proposals)}</dd>
        </div>
        <div>
          <dt>Lines refused</dt>
          <dd>{count(of.refused)}</dd>
        </div>
        <div>
          <dt>Tokens of prompts</dt>
          <dd>{count(of.prompt_tokens)}</dd>
        </div>
        <div>
          <dt>Tokens of completions</dt>
          <dd>{count(of.completion_tokens)}</dd>
        </div>
        {of.cost !== undefined && (
          <div>
            <dt>Cost</dt>
            <dd>{count(of.cost)}</dd>
          </div>
        )}
        <div>
          <dt>Run time</dt>
          <dd>{duration(of.wall_ms)}</dd>
        </div>
      </dl>
    </>
  );
}

function Rows(props: {
  name: string;
  title: string;
  entries: NamedFigures[];
  list: (name: string) => Filters;
  to: (more: Filters) => string;
}): JSX.Element | null {
  const { name, title, entries, list, to } = props;
  if (entries.length === 0) return null;
  const most = Math.max(...entries.map(({ runs }) => runs));
  const hasCost = entries.some(({ cost }) => cost !== undefined);
  return (
    <Panel title={title}>
      <Table
        name={title}
        columns={[name, ...COLUMNS, ...(hasCost ? ["#Cost"] : [])]}
      >
        {entries.map((entry) => {
          const of = list(entry.name);
          const number = (value: number, more: Filters) => (
            <a href={to({ ...of, ...more })}>{count(value)}</a>
          );
          return (
            <tr key={entry.name}>
              <th scope="row">
                <a href={to(of)}>
                  <Text of={entry.name} max={80} />
                </a>
              </th>
              <td class="num">{number(entry.runs, {})}</td>
              <td>
                <Share of={entry.runs} most={most} />
              </td>
              <td class="num">{number(entry.verified, { status: "verified" })}</td>
              <td class="num">
                {entry.verified_share === null ? "" : percent(entry.verified_share)}
              </td>
              <td class="num">{number(entry.failed, { status: "failed" })}</td>
              <td class="num">{count(entry.steps)}</td>
              <td class="num">{count(entry.refused)}</td>
              <td class="num">{count(entry.prompt_tokens + entry.completion_tokens)}</td>
              <td class="num">{duration(entry.wall_ms)}</td>
              {hasCost && <td class="num">{entry.cost === undefined ? "" : count(entry.cost)}</td>}
            </tr>
          );
        })}
      </Table>
    </Panel>
  );
}

function Outcomes({ of, to }: { of: Figures; to: (more: Filters) => string }): JSX.Element | null {
  const outcomes = Object.entries(of.outcomes).sort(([, a], [, b]) => b - a);
  if (outcomes.length === 0) return null;
  const most = Math.max(...outcomes.map(([, runs]) => runs));
  return (
    <Panel title="What ended the runs">
      <Table name="What ended the runs" columns={["Outcome", "#Runs", RELATIVE]}>
        {outcomes.map(([outcome, runs]) => (
          <tr key={outcome}>
            <th scope="row">{outcomeOf(outcome)}</th>
            <td class="num">
              <a href={to({ outcome })}>{count(runs)}</a>
            </td>
            <td>
              <Share of={runs} most={most} />
            </td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}

function Constraints({
  of,
  to,
}: {
  of: Found["constraints"];
  to: (more: Filters) => string;
}): JSX.Element | null {
  if (of.length === 0) return null;
  const most = Math.max(...of.map(({ lines }) => lines));
  return (
    <Panel title="What refused lines">
      <p class="muted small">A line that breaks several constraints counts for each of them.</p>
      <Table name="What refused lines" columns={["Constraint", "Task", "#Lines", RELATIVE]}>
        {of.map(({ task, constraint, lines }) => (
          <tr key={`${task} ${constraint}`}>
            <th scope="row">
              {constraint === "" ? "no constraint is named" : <Text of={constraint} max={80} />}
            </th>
            <td>
              <a href={to({ task })}>
                <Text of={task} max={80} />
              </a>
            </td>
            <td class="num">
              {constraint === "" ? (
                count(lines)
              ) : (
                <a href={to({ task, constraint })}>{count(lines)}</a>
              )}
            </td>
            <td>
              <Share of={lines} most={most} />
            </td>
          </tr>
        ))}
      </Table>
    </Panel>
  );
}

/** The filter by a day, within the period. */
function dayFilter(name: string, given: Filters): Filters {
  const begin = Date.parse(`${name}T00:00:00Z`);
  const later = (a: number, b: string | undefined) => Math.max(a, Date.parse(b ?? "") || a);
  const earlier = (a: number, b: string | undefined) => Math.min(a, Date.parse(b ?? "") || a);
  return {
    since: new Date(later(begin, given.since)).toISOString(),
    before: new Date(earlier(begin + DAY_MS, given.before)).toISOString(),
  };
}

/** The key whose runs these are, where there are keys. */
function Whose({ of }: { of: string | undefined }): JSX.Element | null {
  if (of === undefined) return null;
  if (of === "*") return <>, of all keys</>;
  return (
    <>
      , of the key <Text of={of} max={80} />
    </>
  );
}

export function Totals(): JSX.Element {
  const place = usePlace().query;
  const given = Object.fromEntries(
    FILTERS.map((name) => [name, place.get(name) ?? undefined]),
  ) as Filters;
  const path = query("/v1/overview", given);
  const loaded = useLoad(path, (signal) => get<Found>(path, signal), EVERY_MS);
  const { data } = loaded;
  const to = (more: Filters) => {
    // The list shows the runs of the same keys.
    return href(["runs"], { ...given, key: data?.key ?? given.key, ...more });
  };
  const days = data?.days.slice(0, DAYS).reverse() ?? [];
  return (
    <main>
      <div class="title">
        <h1>Overview</h1>
      </div>
      <Filter place={place} />
      <Missing of={loaded} />
      {data !== undefined && (
        <>
          <p class="muted">
            Runs accepted from {time(data.since)} to {time(data.before)}
            <Whose of={data.key} />.
            Days are those of UTC.
          </p>
          {data.incomplete === true && (
            <p class="muted" role="status">
              The daemon still looks through runs of an earlier version: some may be missing.
            </p>
          )}
          <Head of={data.total} list={to} />
          {days.length > 1 && (
            <Panel title="Runs by day">
              <Bars
                value={days.map(({ runs }) => runs)}
                other={undefined}
                name="Runs by day"
                isLow
              />
              <p class="small muted">
                From {days[0]?.name} to {days.at(-1)?.name}
              </p>
            </Panel>
          )}
          <Rows
            name="Task"
            title="By task"
            entries={data.tasks}
            list={(task) => ({ task })}
            to={to}
          />
          <Rows
            name="Model"
            title="By model"
            entries={data.models}
            list={(model) => ({ model })}
            to={to}
          />
          <Rows
            name="Day"
            title="By day"
            entries={data.days}
            list={(day) => dayFilter(day, given)}
            to={to}
          />
          <Outcomes of={data.total} to={to} />
          <Constraints of={data.constraints} to={to} />
        </>
      )}
    </main>
  );
}
