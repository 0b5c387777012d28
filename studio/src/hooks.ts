// Loading with repetition, while the page is visible.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError, tryNow } from "./api";

export interface Loaded<T> {
  data: T | undefined;
  error: ApiError | undefined;
  reload: () => void;
}

export function asError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(String(error), -1);
}

/**
 * Loads at once, when `key` changes and, with `every_ms`, again and again while the page is
 * visible. Old data stays until
 * there is new; of another key, it goes at once.
 */
export function useLoad<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  every_ms = 0,
): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError }>({ key });
  const [count, setCount] = useState(0);
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    const run = async () => {
      try {
        const data = await loader.current(control.signal);
        if (!control.signal.aborted) setState({ key, data });
      } catch (error) {
        if (!control.signal.aborted) {
          const reason = asError(error);
          setState((old) => ({ key, data: old.key === key ? old.data : undefined, error: reason }));
          // A daemon that was away is asked again as soon as it is back: requests wait for that.
          if (reason.status === 0) {
            timer = window.setTimeout(next, CHECK_MS);
            return;
          }
        }
      }
      if (every_ms > 0 && !control.signal.aborted) timer = window.setTimeout(next, every_ms);
    };
    const next = () => {
      if (document.hidden) {
        const { signal } = control;
        document.addEventListener("visibilitychange", () => void run(), { once: true, signal });
      } else void run();
    };
    void run();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key, every_ms, count]);
  const reload = useCallback(() => {
    tryNow();
    setCount((old) => old + 1);
  }, []);
  const current = state.key === key;
  return {
    data: current ? state.data : undefined,
    error: current ? state.error : undefined,
    reload,
  };
}

const CHECK_MS = 250;
const RETRY_MS = 2000;
/**
 * Asking about a run that grows takes at most one part in `PACE` of the time, whatever a request
 * costs.
 */
const PACE = 8;

/**
 * Loads what depends on a count that grows, as of events: again whenever the count has changed, or
 * the answer says that there
 * is more, but never before the last answer is there. While `isLive`, it pauses between two answers
 * for a multiple of the time
 * that the last one took, and for `rest_ms` at least: watching a fast run must not slow it down,
 * nor fill a line.
 */
export function useGrowing<T extends { has_more?: boolean }>(
  key: string,
  counted: number,
  isLive: boolean,
  load: (signal: AbortSignal) => Promise<T>,
  rest_ms = CHECK_MS,
): Omit<Loaded<T>, "reload"> {
  const [state, setState] = useState<{ key: string; data?: T; error?: ApiError }>({ key });
  const newest = useRef(counted);
  newest.current = counted;
  const live = useRef(isLive);
  live.current = isLive;
  const loader = useRef(load);
  loader.current = load;
  useEffect(() => {
    const control = new AbortController();
    let timer = 0;
    let loaded = -1;
    let rests_until = 0;
    const run = async () => {
      const now = newest.current;
      const start = performance.now();
      let wait = CHECK_MS;
      try {
        const data = await loader.current(control.signal);
        loaded = data.has_more === true ? -1 : now;
        if (data.has_more === true) wait = 0;
        rests_until = performance.now() + Math.max(rest_ms, PACE * (performance.now() - start));
        if (!control.signal.aborted) setState({ key, data });
      } catch (error) {
        loaded = -1;
        wait = RETRY_MS;
        if (!control.signal.aborted) {
          setState((old) => ({
            key,
            data: old.key === key ? old.data : undefined,
            error: asError(error),
          }));
        }
      }
      if (!control.signal.aborted) timer = window.setTimeout(check, wait);
    };
    const check = () => {
      const rests = live.current && performance.now() < rests_until;
      if (newest.current !== loaded && !rests && !document.hidden) void run();
      else timer = window.setTimeout(check, CHECK_MS);
    };
    void run();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key]);
  const current = state.key === key;
  return { data: current ? state.data : undefined, error: current ? state.error : undefined };
}
