// What became of a proposed line, in the words that the verifier's work allows.

import type { Step } from "./types";

export const DECISIONS = {
  proceed: { sign: "✓", word: "accepted" },
  retry: { sign: "↻", word: "sent back" },
  backtrack: { sign: "✗", word: "rejected" },
};

export interface Decided {
  sign: string;
  word: string;
  /** True if the line was accepted because nothing is wrong with it, as far as was checked. */
  isClean: boolean;
}

/** `unchecked`: nothing looked at the line, so that no sign may say that it is right. */
export function decided(
  step: Pick<Step, "decision" | "applicable" | "score" | "violations">,
  unchecked: boolean,
): Decided {
  if (step.decision !== "proceed") return { ...DECISIONS[step.decision], isClean: false };
  if (!step.applicable) return { sign: "⊘", word: "passed over", isClean: false };
  if (unchecked) return { sign: "○", word: "committed, not checked", isClean: false };
  if (step.score > 0 || step.violations.length > 0) {
    return { sign: "≈", word: "accepted in spite of a violation", isClean: false };
  }
  return { ...DECISIONS.proceed, isClean: true };
}
