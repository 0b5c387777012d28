// The steps that wait for a person, one after the other, undecided ones first; with keys.

import type { JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, post, query } from "./api";
import type { ApiError } from "./api";
import { Assign, WHOSE, assign } from "./assignment";
import { Question, useSpec } from "./essentials";
import { asError } from "./hooks";
import { Keys, useKeysOff } from "./keys";
import { SavePairs } from "./pairs";
import { Panel, Problem, Skeleton } from "./parts";
import { href, setQuery, usePlace } from "./router";
import { StepView } from "./step_view";
import { Hidden, Text, count, some, time, visible } from "./text";
import type { FlaggedStep, Run, RunList } from "./types";

/** Runs of a request, and steps of one. */
const RUNS = 20;
const STEPS = 200;

/** Longest note, as the daemon takes it, in bytes. */
const NOTE_MAX = 4000;

interface Item {
  run: Run;
  step: FlaggedStep;
}

/** An answer that the daemon has not taken yet. */
interface Sent {
  item: Item;
  /** Its number on the page, from 1. */
  number: number;
  /** True if no other step was left to decide. */
  isLast: boolean;
  verdict: "accept" | "reject";
  note: string;
}

/** Which step an item is. */
function keyOf({ run, step }: Item): string {
  return `${run.id} ${step.seq}`;
}

interface Listed {
  items: Item[];
  /** The last run of the page, after which the next one begins; null if there is none. */
  next: string | null;
}

async function stepsOf(run: Run, assignee: string, signal: AbortSignal): Promise<Item[]> {
  const path = `/v1/runs/${encodeURIComponent(run.id)}/reviews`;
  const items: Item[] = [];
  for (let after: number | null = 0; after !== null;) {
    const page: { steps: FlaggedStep[]; next: number | null } = await get(
      query(path, { after, limit: STEPS, assignee }),
      signal,
    );
    items.push(...page.steps.map((step) => ({ run, step })));
    after = page.next;
  }
  return items;
}

async function listed(
  only: string | null,
  assignee: string,
  after: string | null,
  signal: AbortSignal,
): Promise<Listed> {
  if (only !== null) {
    const run = await get<Run>(`/v1/runs/${encodeURIComponent(only)}`, signal);
    return { items: await stepsOf(run, assignee, signal), next: null };
  }
  const { runs, next } = await get<RunList>(
    query("/v1/runs", { needs_review: "true", assignee, limit: RUNS, after }),
    signal,
  );
  const items: Item[] = [];
  for (const run of runs) items.push(...(await stepsOf(run, assignee, signal)));
  return { items, next };
}

/** The question that the step is to answer, beside it: a step is right or wrong for an input. */
function Asked({ run }: { run: string }): JSX.Element {
  const { spec, error, reload } = useSpec(run);
  if (error) return <Problem error={error} retry={reload} />;
  return spec === undefined ? <Skeleton rows={3} /> : <Question spec={spec} />;
}

/** Undecided steps first, each kind in the order it came in. */
export function inOrder<T extends { step: { review: unknown } }>(items: T[]): T[] {
  return [
    ...items.filter(({ step }) => step.review === null),
    ...items.filter(({ step }) => step.review !== null),
  ];
}

const KEYS: [string, string][] = [
  ["a", "it is right"],
  ["r", "it is wrong"],
  ["n, j", "next step"],
  ["p, k", "previous step"],
  ["u", "next undecided step"],
  ["m", "to the note; Escape leaves it"],
  ["t", "take it: you are to review it"],
  ["o", "leave it to nobody"],
  ["w", "all steps, mine, nobody's"],
];

/** The keys that answer. */
const DECIDING = new Set(["a", "r", "t", "o"]);

function useQueue(only: string | null, assignee: string) {
  const [items, setItems] = useState<Item[]>();
  const [next, setNext] = useState<string | null>(null);
  const [error, setError] = useState<ApiError>();
  const [attempt, setAttempt] = useState(0);
  const load = async (known: Item[], after: string | null, signal: AbortSignal) => {
    try {
      const page = await listed(only, assignee, after, signal);
      if (signal.aborted) return;
      setError(undefined);
      // Steps that are on the page keep their place.
      setItems([...known, ...inOrder(page.items)]);
      setNext(page.next);
    } catch (reason) {
      if (!signal.aborted) setError(asError(reason));
    }
  };
  useEffect(() => {
    const control = new AbortController();
    setItems(undefined);
    void load([], null, control.signal);
    return () => control.abort();
  }, [only, assignee, attempt]);
  const more = () => void load(items ?? [], next, new AbortController().signal);
  const put = (decided: Item) =>
    setItems((old) =>
      old?.map((one) =>
        one.run.id === decided.run.id && one.step.seq === decided.step.seq ? decided : one,
      ),
    );
  return { items, next, error, more, put, reload: () => setAttempt((old) => old + 1) };
}

/** The person that a step is left to, in a sentence. */
function nameOf(assignee: string | null): string {
  return assignee === null ? "nobody's" : `for ${visible(assignee, 80)}`;
}

function Decision(props: { of: FlaggedStep["review"]; isSent: boolean }): JSX.Element {
  const { of, isSent } = props;
  if (isSent) return <span class="muted">being marked…</span>;
  if (of === null) return <span class="flag">⚑ undecided</span>;
  return (
    <span>
      {of.verdict === "accept" ? "✓ marked right" : "✗ marked wrong"} by{" "}
      <Text of={of.by} max={80} />, {time(of.at)}
      {of.note !== undefined && of.note !== "" && (
        <>
          : <Text of={of.note} max={400} />
        </>
      )}
    </span>
  );
}

export function Queue(): JSX.Element {
  const address = usePlace().query;
  const only = address.get("run");
  const whose = address.get("whose") ?? "";
  const { items, next, error, more, put, reload } = useQueue(only, whose);
  const [at, setAt] = useState(0);
  // Notes that are not sent yet, by step: one that is typed waits until somebody comes back.
  const [notes, setNotes] = useState<Readonly<Record<string, string>>>({});
  const [refused, setRefused] = useState<ApiError>();
  const [said, setSaid] = useState("");
  const [keysOff, setKeysOff] = useKeysOff();
  // Answers are sent in the order in which they were given, each after the one before was taken.
  // Meanwhile the next step is shown, so that quick keys meet one step after the other.
  const [sent, setSent] = useState<ReadonlySet<string>>(new Set());
  const sending = useRef<Promise<void>>(Promise.resolve());
  const field = useRef<HTMLInputElement>(null);
  const all = items ?? [];
  const place = Math.min(at, Math.max(0, all.length - 1));
  const item = all[place];
  const isOpen = (one: Item | undefined) =>
    one !== undefined && one.step.review === null && !sent.has(keyOf(one));
  const note = item === undefined ? "" : (notes[keyOf(item)] ?? "");
  const open = all.filter(({ step }) => step.review === null).length;
  const present = useRef(all);
  present.current = all;
  useEffect(() => {
    if (sent.size === 0) return undefined;
    const onLeave = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", onLeave);
    return () => removeEventListener("beforeunload", onLeave);
  }, [sent.size === 0]);
  const goTo = useCallback((to: number) => {
    setAt(to);
    setSaid("");
    setRefused(undefined);
  }, []);
  const undecidedAfter = (from: number) => {
    const rest = [...all.keys()].map((offset) => (from + 1 + offset) % all.length);
    return rest.find((index) => isOpen(all[index]) && index !== from);
  };
  const send = async ({ item: of, number, isLast, verdict, note: reason }: Sent) => {
    const word = verdict === "accept" ? "right" : "wrong";
    try {
      const path = `/v1/runs/${encodeURIComponent(of.run.id)}/reviews`;
      const body = { seq: of.step.seq, verdict, ...(reason === "" ? {} : { note: reason }) };
      const step = await post<FlaggedStep>(path, body);
      put({ run: of.run, step });
      const rest = isLast ? " No other is undecided." : "";
      setSaid(`Step ${count(number)} is marked ${word}.${rest}`);
    } catch (refusal) {
      // Back to the step, with what was said of it.
      const index = present.current.findIndex((one) => keyOf(one) === keyOf(of));
      if (index >= 0) {
        goTo(index);
        setNotes((old) => ({ ...old, [keyOf(of)]: reason }));
      }
      setSaid(`Step ${count(number)} is not marked.`);
      setRefused(asError(refusal));
    }
    setSent((old) => new Set([...old].filter((key) => key !== keyOf(of))));
  };
  const decide = (verdict: "accept" | "reject") => {
    if (item === undefined || sent.has(keyOf(item))) return;
    const following = undecidedAfter(place);
    const answer = { item, number: place + 1, isLast: following === undefined, verdict, note };
    setSent((old) => new Set(old).add(keyOf(item)));
    setNotes((old) => ({ ...old, [keyOf(item)]: "" }));
    sending.current = sending.current.then(() => send(answer));
    if (following === undefined) setRefused(undefined);
    else goTo(following);
  };
  const leaveTo = (assignee: string | null) => {
    if (item === undefined) return;
    sending.current = sending.current.then(async () => {
      try {
        const step = await assign(item.run.id, item.step.seq, assignee);
        put({ run: item.run, step });
        setRefused(undefined);
        setSaid(`Step ${count(place + 1)} is ${nameOf(step.assignee)}.`);
      } catch (reason) {
        setRefused(asError(reason));
      }
    });
  };
  const show = (which: string) => {
    setQuery({ whose: which });
    setSaid("");
    goTo(0);
  };
  const following = WHOSE[(WHOSE.findIndex(([name]) => name === whose) + 1) % WHOSE.length];
  const keys: Record<string, () => void> = {
    a: () => decide("accept"),
    r: () => decide("reject"),
    n: () => goTo(Math.min(all.length - 1, place + 1)),
    p: () => goTo(Math.max(0, place - 1)),
    u: () => goTo(undecidedAfter(place) ?? place),
    m: () => field.current?.focus(),
    t: () => leaveTo("me"),
    o: () => leaveTo(null),
    w: () => show(following?.[0] ?? ""),
  };
  const pressed = useRef(keys);
  pressed.current = { ...keys, j: keys["n"] as () => void, k: keys["p"] as () => void };
  useEffect(() => {
    if (keysOff) return undefined;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
      const target = event.target as HTMLElement;
      if (event.key === "Escape" && target === field.current) {
        field.current?.blur();
        return;
      }
      if (target.closest("input, select, textarea") !== null) return;
      const what = pressed.current[event.key];
      if (what === undefined) return;
      event.preventDefault();
      // A key that is held down answers one step.
      if (!event.repeat || !DECIDING.has(event.key)) what();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [keysOff]);
  return (
    <main class="queue">
      <div class="title">
        <h1>Review</h1>
        {items !== undefined && (
          <span class="muted">
            {open === 0 ? "nothing is undecided" : `${some(open, "step")} undecided`}
            {next !== null && ", and more that are not loaded"}
          </span>
        )}
      </div>
      <p class="muted">
        Steps that the verifiers of a run scored far apart
        {only === null ? (
          ", undecided ones first"
        ) : (
          <>
            {" "}
            in{" "}
            <a href={href(["runs", only])}>
              <Text of={only} max={80} />
            </a>
          </>
        )}
        . What you say does not change the run; it is kept with it, and the newest answer counts.
      </p>
      <div class="actions">
        <span class="whose" role="group" aria-label="Whose steps">
          {WHOSE.map(([name, word]) => (
            <button key={name} aria-pressed={whose === name} onClick={() => show(name)}>
              {word}
            </button>
          ))}
        </span>
        <SavePairs run={only} />
      </div>
      {error && <Problem error={error} retry={reload} />}
      {items === undefined && error === undefined && <Skeleton />}
      {items !== undefined && item === undefined && (
        <p class="empty">
          {whose === "" ? "No step waits for a review." : "No such step waits for a review."}
        </p>
      )}
      {item !== undefined && (
        <>
          <section class="review" aria-label="Your answer">
            <h2>
              {count(place + 1)} of {count(all.length)}
              {next !== null && " and more"}: is this step right?
            </h2>
            <p>
              <Decision of={item.step.review} isSent={sent.has(keyOf(item))} />{" "}
              <a
                href={href(["runs", item.run.id], {
                  t: `${item.step.round}.${item.step.trajectory}`,
                })}
              >
                <Text of={item.run.title} max={80} />
              </a>
            </p>
            <label>
              Note, for others
              <input
                ref={field}
                value={note}
                maxLength={NOTE_MAX / 4}
                onInput={(event) => {
                  const typed = event.currentTarget.value;
                  setNotes((old) => ({ ...old, [keyOf(item)]: typed }));
                }}
              />
            </label>
            <Hidden of={note} />
            <div class="actions">
              <button onClick={() => decide("accept")}>Right: accept it (a)</button>
              <button onClick={() => decide("reject")}>Wrong: reject it (r)</button>
              <button disabled={place === 0} onClick={() => keys["p"]?.()}>
                ‹ Previous (p)
              </button>
              <button disabled={place >= all.length - 1} onClick={() => keys["n"]?.()}>
                Next › (n)
              </button>
              <button disabled={undecidedAfter(place) === undefined} onClick={() => keys["u"]?.()}>
                Next undecided (u)
              </button>
              {next !== null && <button onClick={more}>Load more runs</button>}
            </div>
            <Assign step={item.step} onAssign={leaveTo} />
            <p class="muted small" role="status">
              {said}
            </p>
            {refused && <Problem error={refused} />}
            <Keys keys={KEYS} off={keysOff} onOff={setKeysOff} />
          </section>
          <Asked run={item.run.id} />
          <Panel title={`The step in full: event ${count(item.step.seq)}`}>
            <StepView run={item.run} seq={item.step.seq} reviewed />
          </Panel>
        </>
      )}
    </main>
  );
}
