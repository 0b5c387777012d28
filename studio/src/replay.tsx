// Moving along a trajectory: a slider, playing, and jumps to the next step of a kind; with keys as well.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Keys, useKeysOff } from "./keys";
import { count, visible } from "./text";

const KEYS: [string, string][] = [
  ["j, →", "next step"],
  ["k, ←", "previous step"],
  ["x, X", "next, previous step that was not accepted"],
  ["b, B", "next, previous rejected step"],
  ["r, R", "next, previous step sent back"],
  ["p, P", "next, previous undoing of steps"],
  ["f, F", "next, previous step that asks for review"],
  ["Home, End", "first, last step"],
  ["Space", "play, pause"],
  ["l", "follow a run that is under way"],
];

/** Steps a second. */
const SPEEDS = [0.5, 1, 2.5, 5, 10, 25];
const SPEED = "prime-speed";

function keptSpeed(): number {
  const kept = Number(sessionStorage.getItem(SPEED));
  return SPEEDS.includes(kept) ? kept : 2.5;
}

const FIND: Record<string, string> = { x: "rejected", b: "backtrack", r: "retry", p: "pop", f: "flag" };

export function Replay(props: {
  at: number;
  total: number;
  /** True if the daemon is still reading the run, so that `total` is only what it has read. */
  hasMore: boolean;
  violations: string[];
  /** True if the page follows the newest step; undefined where nothing can come any more. */
  follows: boolean | undefined;
  onFollow: (on: boolean) => void;
  onPick: (position: number, replace?: boolean) => void;
  onFind: (what: string, backwards: boolean) => void;
  message: string;
}): JSX.Element {
  const { at, total, hasMore, violations, follows, onFollow, onPick, onFind, message } = props;
  const [speed, setSpeed] = useState(keptSpeed);
  const [playing, setPlaying] = useState(false);
  const [keysOff, setKeysOff] = useKeysOff();
  const now = useRef(props);
  now.current = props;
  const clamp = (position: number) => Math.max(0, Math.min(total - 1, position));
  useEffect(() => {
    if (!playing) return undefined;
    const timer = setInterval(() => {
      const { at: present, total: all } = now.current;
      if (present + 1 < all) now.current.onPick(present + 1, true);
      else setPlaying(false);
    }, 1000 / speed);
    return () => clearInterval(timer);
  }, [playing, speed]);
  useEffect(() => {
    if (keysOff) return undefined;
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (target.closest("input, select, textarea, button, summary, a") !== null) return;
      const { at: present, total: all } = now.current;
      const pick = (position: number) => now.current.onPick(Math.max(0, Math.min(all - 1, position)), true);
      const what = FIND[event.key.toLowerCase()];
      if (what !== undefined) now.current.onFind(what, event.shiftKey);
      else if (["j", "ArrowRight", "ArrowDown"].includes(event.key)) pick(present + 1);
      else if (["k", "ArrowLeft", "ArrowUp"].includes(event.key)) pick(present - 1);
      else if (event.key === "Home") pick(0);
      else if (event.key === "End") pick(all - 1);
      else if (event.key === " ") setPlaying((old) => !old);
      else if (event.key === "l" && now.current.follows !== undefined) now.current.onFollow(!now.current.follows);
      else return;
      event.preventDefault();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [keysOff]);
  return (
    <div class="replay">
      <button aria-label="Previous step" disabled={at === 0} onClick={() => onPick(clamp(at - 1), true)}>
        ‹
      </button>
      <button aria-label={playing ? "Pause" : "Play"} aria-pressed={playing} onClick={() => setPlaying(!playing)}>
        {playing ? "❚❚" : "▶"}
      </button>
      <button aria-label="Next step" disabled={at >= total - 1} onClick={() => onPick(clamp(at + 1), true)}>
        ›
      </button>
      <select
        aria-label="Steps a second, when played"
        value={String(speed)}
        onChange={(event) => {
          sessionStorage.setItem(SPEED, event.currentTarget.value);
          setSpeed(Number(event.currentTarget.value));
        }}
      >
        {SPEEDS.map((one) => (
          <option key={one} value={String(one)}>
            {one}/s
          </option>
        ))}
      </select>
      {follows !== undefined && (
        <button aria-pressed={follows} onClick={() => onFollow(!follows)}>
          Follow
        </button>
      )}
      <input
        type="range"
        aria-label="Step"
        aria-valuetext={`step ${count(at)} of ${count(total)}`}
        min={0}
        max={Math.max(0, total - 1)}
        value={at}
        onInput={(event) => onPick(Number(event.currentTarget.value), true)}
      />
      <label class="jump">
        <span class="hidden">Go to step</span>
        <input
          inputMode="numeric"
          size={8}
          key={at}
          defaultValue={String(at)}
          onChange={(event) => {
            const position = Number(event.currentTarget.value.replaceAll(",", "")) || 0;
            onPick(hasMore ? Math.max(0, position) : clamp(position));
          }}
        />
        <span class="muted">of {count(total)}</span>
      </label>
      <button onClick={() => onFind("rejected", true)}>‹ rejected</button>
      <button onClick={() => onFind("rejected", false)}>rejected ›</button>
      {violations.length > 0 && (
        <select
          aria-label="Next violation of"
          value=""
          onChange={(event) => {
            const { value } = event.currentTarget;
            event.currentTarget.value = "";
            if (value !== "") onFind(`violation:${value}`, false);
          }}
        >
          <option value="">next violation of…</option>
          {violations.map((name) => (
            <option key={name} value={name}>
              {visible(name, 60)}
            </option>
          ))}
        </select>
      )}
      <Keys keys={KEYS} off={keysOff} onOff={setKeysOff} />
      <span class="muted" role="status">
        {message}
      </span>
    </div>
  );
}
