// Which two runs are compared.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get } from "./api";
import { useLoad } from "./hooks";
import { Panel } from "./parts";
import { go, href } from "./router";
import { Hidden, Text, time, visible } from "./text";
import type { Run, RunList } from "./types";

/** Which two runs: those of the list are offered, and any other can be named. */
export function Choice({ a, b }: { a: string; b: string }): JSX.Element {
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const runs = useLoad("recent runs", (signal) => get<RunList>("/v1/runs?limit=50", signal));
  const field = (label: string, value: string, set: (value: string) => void) => (
    <label class="field">
      <span>{label}</span>
      <input
        list="recent-runs"
        spellcheck={false}
        placeholder="run_…"
        value={value}
        onInput={(event) => set(event.currentTarget.value)}
      />
      <Hidden of={value} />
    </label>
  );
  // What a run is compared with is most often another try at the same.
  const known = runs.data?.runs.find(({ id }) => id === first.trim());
  const alike = runs.data?.runs.filter(
    (run) => run.id !== known?.id && run.title === known?.title && run.task === known?.task,
  );
  return (
    <>
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
              {visible(`${run.title}, ${run.status}`, 120)}
            </option>
          ))}
        </datalist>
        {field("First run", first, setFirst)}
        {field("Second run", second, setSecond)}
        <button class="primary">Compare</button>
      </form>
      {known === undefined && (
        <Recent
          runs={runs.data?.runs ?? []}
          title="Recent runs, to choose the first"
          to={(run) => ({ a: run.id })}
        />
      )}
      {known !== undefined && alike !== undefined && (
        <Recent
          runs={alike}
          title="Recent runs of the same instance"
          to={(run) => ({ a: known.id, b: run.id })}
        />
      )}
    </>
  );
}

/** Runs to choose from, as links. */
function Recent(props: {
  runs: Run[];
  title: string;
  to: (run: Run) => { a: string; b?: string };
}): JSX.Element | null {
  const { runs, title, to } = props;
  if (runs.length === 0) {
    return (
      <p class="muted">
        {title}: none. <a href={href(["runs"])}>The list of runs</a> has all.
      </p>
    );
  }
  return (
    <Panel title={title}>
      <ul class="plain">
        {runs.slice(0, 10).map((run) => (
          <li key={run.id}>
            <a href={href(["compare"], to(run))}>
              <Text of={run.title} max={80} />
            </a>{" "}
            <span class="muted small">
              {run.status}, seed {String(run.seed)}, {time(run.created_at)}
            </span>
          </li>
        ))}
      </ul>
      {runs.length > 10 && (
        <p class="muted">
          The ten newest; <a href={href(["runs"])}>the list of runs</a> has all.
        </p>
      )}
    </Panel>
  );
}
