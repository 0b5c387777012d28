// The pages of the list of runs. What was loaded stays: the newest runs and those under way are
// asked about again, and
// nothing else, so that a long list costs no more than a short one.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, query, tryNow } from "./api";
import type { ApiError } from "./api";
import { asError } from "./hooks";
import { isOver } from "./live";
import type { Run, RunList, Status } from "./types";

/** Runs of a page. */
const PAGE = 50;
/** The newest runs, which are asked about every time. */
const NEWEST = 10;
/** As many as the daemon gives at once: where all of the newest are new. */
const NEWEST_MAX = 1000;
/** Runs under way further down that are asked about each time, in turn. */
const WATCHED = 2;
/** Pauses between two looks: while something happens, and the longest where nothing does. */
const EVERY_MS = 2000;
const EVERY_MS_MAX = 10_000;
/** Most pages that are loaded again when somebody comes back to a list. */
const PAGES_BACK = 40;

/** What the list shows of a run: the daemon sends nothing else. */
const FIELDS = [
  "id",
  "status",
  "task",
  "instance",
  "title",
  "steps",
  "proposals",
  "outcome",
  "waiting_for",
  "reviews",
  "agents",
  "tokens",
  "wall_ms",
  "labels",
  "imported",
  "found",
  "created_at",
  "updated_at",
].join(",");
/** Most empty pages of a search that are passed over at once. */
const EMPTY_MAX = 5;

/** Filters that the rows themselves answer: then new runs come on top of the list. */
const PLAIN = ["status", "task", "needs_review"] as const;
/** Those for which the daemon searches. */
export const SEARCHED = [
  "q",
  "sort",
  "agent",
  "model",
  "outcome",
  "constraint",
  "label",
  "key",
  "since",
  "before",
  "steps_min",
  "steps_max",
  "tokens_min",
  "tokens_max",
] as const;
export const FILTERS = [...PLAIN, ...SEARCHED];

export type Filters = Partial<Record<(typeof FILTERS)[number], string | undefined>>;

function isSearch(filters: Filters): boolean {
  return SEARCHED.some((name) => filters[name] !== undefined);
}

interface Loaded {
  key: string;
  runs: Run[] | undefined;
  unreadable: string[];
  /** Where the next page begins; null at the end. */
  next: string | null;
  error: ApiError | undefined;
  isLoading: boolean;
  /** True if the daemon has not looked through all runs yet. */
  isIncomplete: boolean;
  /** True if all pages are there that the list had when it was left. */
  isBack: boolean;
}

function empty(key: string): Loaded {
  return {
    key,
    runs: undefined,
    unreadable: [],
    next: null,
    error: undefined,
    isLoading: true,
    isIncomplete: false,
    isBack: false,
  };
}

/**
 * How many pages of the list there were when it was left by a link: kept with the entry of the
 * history.
 */
function pagesBack(): number {
  const pages = (history.state as { pages?: unknown } | null)?.pages;
  return typeof pages === "number" ? Math.max(1, Math.min(PAGES_BACK, pages)) : 1;
}

function keepPages(pages: number): void {
  history.replaceState({ ...(history.state as object | null), pages }, "");
}

/** The newest of a list, into what is known of it: new runs on top, known ones in their place. */
export function merged(known: Run[], newest: Run[]): Run[] {
  const now = new Map(newest.map((run) => [run.id, run]));
  const fresh = newest.filter(({ id }) => !known.some((old) => old.id === id));
  return [...fresh, ...known.map((old) => now.get(old.id) ?? old)];
}

function fits(run: Run, filters: Filters): boolean {
  const isDecided = filters.needs_review !== undefined && run.reviews?.open === 0;
  return !isDecided && (filters.status === undefined || run.status === filters.status);
}

/** The runs that fit, newest first; `more` loads the next page. */
export function useRuns(filters: Filters): Loaded & { more: () => void; reload: () => void } {
  const key = query("/v1/runs", { ...filters });
  const [state, setState] = useState<Loaded>(() => empty(key));
  const [attempt, setAttempt] = useState(0);
  const now = useRef(state);
  now.current = state;
  const put = (change: Partial<Loaded>) => {
    setState((old) => ({ ...(old.key === key ? old : empty(key)), ...change }));
  };
  const loadMore = async (signal?: AbortSignal) => {
    const { runs = [], next, unreadable } = now.current.key === key ? now.current : empty(key);
    put({ isLoading: true });
    const ask = (after: string | null) => {
      const asked = { ...filters, fields: FIELDS, limit: PAGE, after };
      return get<RunList>(query("/v1/runs", asked), signal);
    };
    let page = await ask(next);
    for (let empty = 0; page.runs.length === 0 && page.next !== null && empty < EMPTY_MAX; ) {
      page = await ask(page.next);
      empty += 1;
    }
    const known = new Set(runs.map(({ id }) => id));
    const all = [...runs, ...page.runs.filter(({ id }) => !known.has(id))];
    const change = {
      runs: all,
      next: page.next,
      unreadable: [...new Set([...unreadable, ...(page.unreadable ?? [])])],
      error: undefined,
      isLoading: false,
      isIncomplete: page.incomplete === true,
    };
    now.current = { ...now.current, key, ...change };
    put(change);
  };
  useEffect(() => {
    const control = new AbortController();
    const { signal } = control;
    let timer = 0;
    let turn = 0;
    let pause = EVERY_MS;
    now.current = empty(key);
    setState(empty(key));
    const begin = async () => {
      for (let pages = pagesBack(); pages > 0; pages -= 1) {
        await loadMore(signal);
        if (now.current.next === null) break;
      }
      now.current = { ...now.current, isBack: true };
      put({ isBack: true });
    };
    const look = async () => {
      const known = now.current.runs ?? [];
      const ask = async (limit: number) => {
        const asked = { ...filters, fields: FIELDS, limit };
        return (await get<RunList>(query("/v1/runs", asked), signal)).runs;
      };
      const meets = (runs: Run[]) =>
        known.length === 0 || runs.some(({ id }) => known.some((old) => old.id === id));
      if (isSearch(filters)) {
        const first = await ask(PAGE);
        // In a longer list, only what is known is renewed: the order of the rest is the daemon's.
        const renewed = known.map((old) => first.find(({ id }) => id === old.id) ?? old);
        const runs = known.length <= PAGE ? first : renewed;
        pause = Math.min(EVERY_MS_MAX, pause * 1.5);
        if (!signal.aborted) {
          now.current = { ...now.current, runs, error: undefined };
          put({ runs, error: undefined });
        }
        return;
      }
      let newest = await ask(NEWEST);
      if (newest.length === NEWEST && !meets(newest)) newest = await ask(NEWEST_MAX);
      if (newest.length >= NEWEST_MAX && !meets(newest)) {
        // So many are new that what is between is not known: the list begins anew.
        now.current = { ...empty(key), runs: [], isBack: true };
        await loadMore(signal);
        return;
      }
      const open = known.filter((run) => !isOver(run) && !newest.some(({ id }) => id === run.id));
      const watched = Array.from(
        { length: Math.min(WATCHED, open.length) },
        (_, at) => open[(turn + at) % open.length],
      );
      turn += WATCHED;
      const asked = watched.flatMap((run) =>
        run === undefined ? [] : [get<Run>(`/v1/runs/${encodeURIComponent(run.id)}`, signal)],
      );
      const found = new Map((await Promise.all(asked)).map((run) => [run.id, run]));
      // A run that fitted when it was loaded stays unless its status does not fit any more.
      const all = merged(now.current.runs ?? [], newest).map((run) => found.get(run.id) ?? run);
      const runs = all.filter((run) => fits(run, filters));
      const isNews =
        runs.length !== known.length ||
        runs.some((run, at) => run.updated_at !== known[at]?.updated_at);
      pause =
        isNews || runs.some((run) => !isOver(run)) ? EVERY_MS : Math.min(EVERY_MS_MAX, pause * 1.5);
      if (!signal.aborted && (isNews || now.current.error !== undefined)) {
        now.current = { ...now.current, runs, error: undefined };
        put({ runs, error: undefined });
      }
    };
    let work = begin;
    const run = async () => {
      try {
        await work();
        work = look;
      } catch (error) {
        if (!signal.aborted) put({ error: asError(error), isLoading: false });
      }
      if (!signal.aborted) timer = window.setTimeout(next, pause);
    };
    const next = () => {
      if (document.hidden)
        document.addEventListener("visibilitychange", () => void run(), { once: true, signal });
      else void run();
    };
    void run();
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key, attempt]);
  const more = () => {
    keepPages(Math.ceil((now.current.runs?.length ?? 0) / PAGE) + 1);
    loadMore().catch((error: unknown) => put({ error: asError(error), isLoading: false }));
  };
  const reload = useCallback(() => {
    tryNow();
    setAttempt((old) => old + 1);
  }, []);
  return { ...(state.key === key ? state : empty(key)), more, reload };
}

export const STATUSES: Status[] = [
  "queued",
  "running",
  "waiting",
  "verified",
  "unrefuted",
  "unverified",
  "failed",
  "cancelled",
];
