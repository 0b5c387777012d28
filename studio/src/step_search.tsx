// The steps of a trajectory that are of a kind or have a text, found by reading on from its
// beginning.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { get, query } from "./api";
import { DECISIONS } from "./decisions";
import { asError } from "./hooks";
import { Hidden, count, some, visible } from "./text";
import type { Step, StepList } from "./types";
import { useWindowed } from "./windowed";

/** Steps of a request, and found ones after which the search stops until somebody asks for more. */
const PAGE = 1000;
const FOUND = 200;

export interface Wanted {
  /** Part of a line, whatever its case; empty for any. */
  text: string;
  /** `any`, `refused`, `retry`, `backtrack`, `flag`, or `violation:NAME`. */
  kind: string;
}

/** True if a step is among those that are looked for. */
export function fits(step: Step, { text, kind }: Wanted): boolean {
  const isKind =
    kind === "any" ||
    (kind === "refused" && step.decision !== "proceed") ||
    (kind === "flag" && step.needs_review) ||
    kind === step.decision ||
    (kind.startsWith("violation:") && step.violations.includes(kind.slice("violation:".length)));
  return isKind && step.action.toLowerCase().includes(text.toLowerCase());
}

interface Found {
  steps: Step[];
  /** Steps that were looked at. */
  read: number;
  isReading: boolean;
  message: string;
}

const NOTHING: Found = { steps: [], read: 0, isReading: false, message: "" };

/** The steps that were found: some thousand, of which only the visible ones are in the page. */
function FoundSteps(props: {
  steps: Step[];
  at: number;
  onPick: (position: number) => void;
}): JSX.Element {
  const { steps, at, onPick } = props;
  const { box, onScroll, first, last, spacer, topOf } = useWindowed<HTMLDivElement>(steps.length);
  return (
    <div ref={box} class="rows" tabIndex={0} role="region" aria-label="Found" onScroll={onScroll}>
      <ol class="spacer" style={{ height: `${spacer}px` }}>
        {steps.slice(first, last).map((step, place) => (
          <li
            key={step.seq}
            aria-posinset={first + place + 1}
            aria-setsize={steps.length}
            style={{ top: `${topOf(first + place)}px` }}
          >
            <button
              type="button"
              class="link"
              aria-pressed={step.position === at}
              onClick={() => step.position !== null && onPick(step.position)}
            >
              <span class="num">{count(step.position ?? 0)}</span>{" "}
              <span aria-hidden="true">{DECISIONS[step.decision].sign}</span>
              <span class="hidden">{DECISIONS[step.decision].word}</span>{" "}
              <bdi>{visible(step.action || "(no line left)", 120)}</bdi>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}

export function StepSearch(props: {
  run: string;
  trajectory: string;
  total: number;
  at: number;
  violations: string[];
  onPick: (position: number) => void;
}): JSX.Element {
  const { run, trajectory, total, at, violations, onPick } = props;
  const [text, setText] = useState("");
  const [kind, setKind] = useState("any");
  const [found, setFound] = useState<Found>();
  const control = useRef<AbortController>();
  useEffect(() => () => control.current?.abort(), []);
  const read = async (wanted: Wanted, from: Found) => {
    control.current?.abort();
    const mine = new AbortController();
    control.current = mine;
    let now: Found = { ...from, isReading: true, message: "" };
    setFound(now);
    const most = now.steps.length + FOUND;
    try {
      while (now.read < total && now.steps.length < most) {
        const path = query(`/v1/runs/${encodeURIComponent(run)}/steps`, {
          trajectory,
          from: now.read,
          limit: PAGE,
        });
        const { steps, has_more } = await get<StepList>(path, mine.signal);
        if (steps.length === 0 && has_more !== true) break;
        // Not more than were asked for at once: what is left of the page is read again.
        const rest = most - now.steps.length;
        const fitting = steps.filter((step) => fits(step, wanted));
        const last = fitting.length > rest ? fitting[rest - 1] : undefined;
        const read_to = (last?.position ?? now.read + steps.length - 1) + 1;
        now = { ...now, steps: [...now.steps, ...fitting.slice(0, rest)], read: read_to };
        if (mine.signal.aborted) return;
        setFound(now);
      }
      setFound({ ...now, isReading: false });
    } catch (error) {
      if (!mine.signal.aborted)
        setFound({ ...now, isReading: false, message: asError(error).message });
    }
  };
  const search = (wanted: Wanted) => {
    if (wanted.text === "" && wanted.kind === "any") {
      control.current?.abort();
      setFound(undefined);
    } else void read(wanted, NOTHING);
  };
  const clear = () => {
    setText("");
    setKind("any");
    search({ text: "", kind: "any" });
  };
  return (
    <form
      class="step-search"
      role="search"
      aria-label="Steps of this trajectory"
      onSubmit={(event) => {
        event.preventDefault();
        search({ text, kind });
      }}
    >
      <input
        type="search"
        aria-label="Text of a line"
        placeholder="Text of a line"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <select
        aria-label="Kind of step"
        value={kind}
        onChange={(event) => {
          setKind(event.currentTarget.value);
          search({ text, kind: event.currentTarget.value });
        }}
      >
        <option value="any">all steps</option>
        <option value="refused">not accepted</option>
        <option value="retry">sent back</option>
        <option value="backtrack">rejected</option>
        <option value="flag">asks for review</option>
        {violations.map((name) => (
          <option key={name} value={`violation:${name}`}>
            breaks {visible(name, 60)}
          </option>
        ))}
      </select>
      <button>Find</button>
      <Hidden of={text} />
      {found !== undefined && (
        <div class="found">
          <p class="small" role="status">
            {found.message !== "" && `${visible(found.message, 200)} `}
            {some(found.steps.length, "step")} in{" "}
            {found.read >= total
              ? `all ${count(total)}`
              : `the first ${count(found.read)} of ${count(total)}`}
            {found.isReading && ", reading on…"}{" "}
            <button type="button" class="link" onClick={clear}>
              Show all steps
            </button>
          </p>
          {found.steps.length > 0 && <FoundSteps steps={found.steps} at={at} onPick={onPick} />}
          {!found.isReading && found.read < total && (
            <button type="button" onClick={() => void read({ text, kind }, found)}>
              Find more
            </button>
          )}
        </div>
      )}
    </form>
  );
}
