// The labels that clients give a run, by which it is found.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { put } from "./api";
import type { ApiError } from "./api";
import { asError } from "./hooks";
import { Problem } from "./parts";
import { href } from "./router";
import { Text } from "./text";
import type { Run } from "./types";

/** Labels as links to the runs that have them. */
export function Labels({ of }: { of: Record<string, string> | undefined }): JSX.Element | null {
  const all = Object.entries(of ?? {});
  if (all.length === 0) return null;
  return (
    <span class="labels small">
      {all.map(([name, value]) => (
        <a key={name} href={href(["runs"], { label: `${name}:${value}` })}>
          <Text of={value === "" ? name : `${name}: ${value}`} max={80} />
        </a>
      ))}
    </span>
  );
}

/** A label a line, its name before the first colon. */
export function readLabels(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.includes(":") ? line.indexOf(":") : line.length;
      return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}

/** What `readLabels` reads. */
export function labelLines(labels: Record<string, string>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

/** Changes the labels of a run. */
export function LabelForm({ run }: { run: Run }): JSX.Element {
  const [labels, setLabels] = useState<Record<string, string>>();
  const [error, setError] = useState<ApiError>();
  const [text, setText] = useState<string>();
  const now = labels ?? run.labels ?? {};
  const lines = labelLines(now);
  const save = async () => {
    try {
      const path = `/v1/runs/${encodeURIComponent(run.id)}/labels`;
      const saved = await put<Run>(path, readLabels(text ?? lines));
      setLabels(saved.labels ?? {});
      setText(undefined);
      setError(undefined);
    } catch (reason) {
      setError(asError(reason));
    }
  };
  return (
    <>
      <Labels of={now} />
      <details>
        <summary>Change labels</summary>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <label class="field">
            <span>Labels, one a line, such as team: red</span>
            <textarea
              rows={3}
              value={text ?? lines}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          </label>
          <button>Save labels</button>
        </form>
        {error && <Problem error={error} />}
      </details>
    </>
  );
}
