// Small parts that several screens use.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "./api";
import { visible, words } from "./text";
import type { Run, Status } from "./types";

const SIGNS: Record<Status, string> = {
  queued: "\u2026",
  running: "\u25b6",
  waiting: "\u270b",
  verified: "\u2713",
  unrefuted: "\u223c",
  unverified: "?",
  failed: "\u2717",
  cancelled: "\u25a0",
};

/** The status of a run. What another daemon says about a run that was imported is not this one's word. */
export function Badge({ run }: { run: Run }): JSX.Element {
  const { status, imported } = run;
  return imported === undefined ? (
    <span class={`badge ${status}`}>
      <span aria-hidden="true">{SIGNS[status]}</span> {words(status)}
    </span>
  ) : (
    <span class="badge imported" title={`Imported from ${visible(imported.node)}, and not judged here`}>
      imported: {words(status)}
    </span>
  );
}

export function Problem({ error, retry }: { error: ApiError; retry?: () => void }): JSX.Element {
  return (
    <div class="problem" role="alert">
      <p>{visible(error.message)}</p>
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}

/** What stands for data that is not there: why not, or that it is on its way. */
export function Missing({ of }: { of: { data?: unknown; error?: ApiError; reload: () => void } }): JSX.Element {
  const { data, error, reload } = of;
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {data === undefined && error === undefined && <Skeleton />}
    </>
  );
}

export function Skeleton({ rows = 6 }: { rows?: number }): JSX.Element {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, at) => (
        <div key={at} />
      ))}
    </div>
  );
}

export function Panel(props: { title: string; actions?: ComponentChildren; children: ComponentChildren; class?: string }) {
  return (
    <section class={`panel ${props.class ?? ""}`} aria-label={props.title}>
      <header>
        <h2>{props.title}</h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

/** A table that scrolls by itself where the window is narrow; names of columns that begin with # are of figures. */
export function Table(props: { name: string; columns: string[]; children: ComponentChildren }): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`Table: ${props.name}`}>
      <table>
        <thead>
          <tr>
            {props.columns.map((column) => (
              <th key={column} scope="col" class={column.startsWith("#") ? "num" : undefined}>
                {column.replace("#", "")}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

/** Has the browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

export function Copy({ label, text }: { label: string; text: () => string }): JSX.Element {
  const [done, setDone] = useState("");
  const copy = async () => {
    let content: string;
    try {
      content = text();
    } catch {
      // The form that could not make it says why.
      return;
    }
    try {
      await navigator.clipboard.writeText(content);
      setDone("Copied");
    } catch {
      setDone("Not allowed");
    }
    setTimeout(() => setDone(""), 2000);
  };
  return (
    <button onClick={() => void copy()}>
      <span aria-live="polite">{done === "" ? label : done}</span>
    </button>
  );
}
