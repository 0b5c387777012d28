// Plain values in text: each in full, changes marked, long lists shown further on request.

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Exact, jsonText, sameJson as same } from "./exact";
import { Long, count } from "./text";

type Json = unknown;

/** Items of a list that are shown at first; ten times as many come at each request. */
const ITEMS = 400;

/** The sign of what differs from the state before. */
export const CHANGED = "\u25cf";

export function scalar(value: Json): boolean {
  return value === null || typeof value !== "object" || value instanceof Exact;
}

/** What follows a list that is shown in part. */
export function More({
  left,
  step,
  onMore,
}: {
  left: number;
  step: number;
  onMore: () => void;
}): JSX.Element | null {
  if (left <= 0) return null;
  return (
    <button type="button" class="link" onClick={onMore}>
      Show{" "}
      {left <= step ? `the other ${count(left)}` : `${count(step)} of the other ${count(left)}`}
    </button>
  );
}

export function Changed({ is, children }: { is: boolean; children: ComponentChildren }): JSX.Element {
  return (
    <span class={is ? "leaf changed" : "leaf"}>
      {is && (
        <span class="sign" title="differs from the state before">
          {CHANGED}{" "}
        </span>
      )}
      {children}
    </span>
  );
}

/** A list of plain values in a few lines. */
export function Items({
  items,
  other,
}: {
  items: Json[];
  other?: Json[] | Record<string, Json>;
}): JSX.Element {
  const [shown, setShown] = useState(ITEMS);
  const before = other as Record<string, Json> | undefined;
  return (
    <span class="leaf">
      [
      {items.slice(0, shown).map((item, at) => {
        const changed = before !== undefined && !same(before[String(at)], item);
        return (
          <span key={at}>
            {at > 0 && ", "}
            {changed ? (
              <Changed is>
                <Long of={jsonText(item)} max={400} />
              </Changed>
            ) : (
              <Long of={jsonText(item)} max={400} />
            )}
          </span>
        );
      })}
      {items.length > shown && ", … "}
      <More
        left={items.length - shown}
        step={10 * ITEMS}
        onMore={() => setShown(shown + 10 * ITEMS)}
      />
      ]
    </span>
  );
}
