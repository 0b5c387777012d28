// How figures are printed. They decide nothing: `scripts/measure-studio` collects them for docs/studio.md.

export function line(what: string, figure: string): void {
  console.log(`measured | ${what} | ${figure}`);
}

/** The value below which a share of all lies. */
export function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? NaN;
}

export function spread(what: string, ms: number[]): void {
  const at = (share: number) => quantile(ms, share).toFixed(0);
  line(`${what}, ${ms.length} times`, `p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, most ${at(1)} ms`);
}
