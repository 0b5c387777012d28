// The steps of two runs side by side: by what was committed, so that one more rejection in one of
// them does not set
// everything below it off.

import type { Step } from "./types";

export interface Row {
  a: Step | undefined;
  b: Step | undefined;
}

export function isSame(a: Step | undefined, b: Step | undefined): boolean {
  return (
    a !== undefined &&
    b !== undefined &&
    a.action === b.action &&
    a.decision === b.decision &&
    a.violations.join("\n") === b.violations.join("\n")
  );
}

/**
 * Pairs steps in order. Equal ones are a pair, and so are two committed ones of the same depth,
 * which take the same
 * place. A step that was not committed stands alone beside a committed one; of two at different
 * depths, the less deep one
 * comes first, as after an undoing in one of the runs.
 */
export function aligned(a: Step[], b: Step[]): Row[] {
  const rows: Row[] = [];
  let [left, right] = [0, 0];
  while (left < a.length || right < b.length) {
    const [one, other] = [a[left], b[right]];
    const oneIn = one?.decision === "proceed";
    const otherIn = other?.decision === "proceed";
    const takesOne =
      one !== undefined &&
      (other === undefined || isSame(one, other) || oneIn === otherIn || !oneIn);
    const takesOther =
      other !== undefined &&
      (one === undefined || isSame(one, other) || oneIn === otherIn || !otherIn);
    // Two that are of a kind may be at other depths: the deeper one waits.
    const waits =
      one !== undefined && other !== undefined && oneIn === otherIn
        ? Math.sign(one.depth - other.depth)
        : 0;
    const row = {
      a: takesOne && waits <= 0 ? one : undefined,
      b: takesOther && waits >= 0 ? other : undefined,
    };
    rows.push(row);
    if (row.a !== undefined) left += 1;
    if (row.b !== undefined) right += 1;
  }
  return rows;
}
