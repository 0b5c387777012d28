// The record of a run as it becomes durable: a stream that is resumed after every break, and says how long it has been
// lost.

import { useEffect, useState } from "preact/hooks";
import { ApiError, get, stream } from "./api";
import { parseJson } from "./exact";
import { asError } from "./hooks";
import type { Run, Writing } from "./types";

const RETRY_MS = [500, 1000, 2000, 4000, 8000, 10_000];

export function isOver(run: Run): boolean {
  return run.status !== "queued" && run.status !== "running" && run.status !== "waiting";
}

export interface Live {
  run: Run | undefined;
  /** What its models write at this moment. */
  writing: Writing[];
  error: ApiError | undefined;
  /** When the connection was lost; null while there is one. */
  lost: Date | null;
}

const NOTHING: Live = { run: undefined, writing: [], error: undefined, lost: null };

/** Follows a run until it is over; the stream is closed while the page is hidden, so that tabs do not use up connections. */
export function useLive(id: string): Live {
  const [state, setState] = useState<Live & { id: string }>({ id, ...NOTHING });
  useEffect(() => {
    const path = `/v1/runs/${encodeURIComponent(id)}`;
    const ended = new AbortController();
    let control = new AbortController();
    let last = "";
    let failures = 0;
    const put = (change: Partial<Live>) => {
      if (!ended.signal.aborted) setState((old) => ({ ...(old.id === id ? old : { id, ...NOTHING }), ...change }));
    };
    const pause = (ms: number) =>
      new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        ended.signal.addEventListener("abort", () => (clearTimeout(timer), resolve()));
      });
    const visible = () =>
      new Promise<void>((resolve) => {
        if (!document.hidden) resolve();
        else document.addEventListener("visibilitychange", () => resolve(), { once: true });
      });
    const follow = async () => {
      let over = false;
      while (!over && !ended.signal.aborted) {
        await visible();
        control = new AbortController();
        try {
          const run = await get<Run>(path, control.signal);
          failures = 0;
          over = isOver(run);
          // What was written before a break may be over.
          put({ run, error: undefined, lost: null, writing: [] });
          if (over) return;
          const onEvent = ({ id: number, event, data }: { id: string; event: string; data: string }) => {
            if (event === "writing") {
              put({ writing: (JSON.parse(data) as { turns: Writing[] }).turns });
              return;
            }
            if (event !== "record") return;
            last = number;
            const record = parseJson(data) as Run;
            over = isOver(record);
            put({ run: record, error: undefined, lost: null, ...(over ? { writing: [] } : {}) });
          };
          await stream(`${path}/progress`, last, onEvent, control.signal);
          // A daemon that drains ends its streams: after a pause, its successor answers.
          if (!over) await pause(RETRY_MS[0] ?? 500);
        } catch (reason) {
          if (ended.signal.aborted) return;
          if (control.signal.aborted) continue;
          const error = asError(reason);
          if (error.status >= 400 && error.status < 500 && error.status !== 429) {
            put({ error });
            return;
          }
          setState((old) => ({ ...old, lost: old.lost ?? new Date() }));
          await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] ?? 10_000);
          failures += 1;
        }
      }
    };
    const onHidden = () => {
      if (document.hidden) control.abort();
    };
    document.addEventListener("visibilitychange", onHidden);
    void follow();
    return () => {
      document.removeEventListener("visibilitychange", onHidden);
      ended.abort();
      control.abort();
    };
  }, [id]);
  return state.id === id ? state : NOTHING;
}
