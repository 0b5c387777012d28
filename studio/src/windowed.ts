// The visible rows of a long list: others do not exist in the page. A browser draws no element
// higher than some million pixels, so beyond that the scroll bar is scaled.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

/** Height of a row, in pixels, as in the style sheet. */
const ROW = 28;
const HEIGHT_MAX = 8_000_000;

/** What a list needs to draw its rows: each lies at its own place in a spacer inside of a box. */
export interface Windowed<Box extends HTMLElement> {
  box: RefObject<Box>;
  onScroll: () => void;
  /** The first visible row, and the one after the last. */
  first: number;
  last: number;
  /** Height of the spacer, in pixels. */
  spacer: number;
  /** Where a visible row lies in the spacer, in pixels. */
  topOf: (row: number) => number;
  /** Scrolls to a row, unless it is visible. */
  show: (row: number) => void;
}

export function useWindowed<Box extends HTMLElement>(total: number): Windowed<Box> {
  const box = useRef<Box>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(420);
  const full = total * ROW;
  const spacer = Math.min(full, HEIGHT_MAX);
  const scale = spacer > height ? Math.max(1, (full - height) / (spacer - height)) : 1;
  const first = Math.max(0, Math.min(total - 1, Math.floor((top * scale) / ROW)));
  const last = Math.min(total, first + Math.ceil(height / ROW) + 1);
  // Rows lie at the scroll position where a scaled bar would put them too far apart.
  const offset =
    scale === 1 ? first * ROW : Math.min(top, Math.max(0, spacer - (last - first) * ROW));

  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);

  const show = (row: number) => {
    const element = box.current;
    if (element === null || (row >= first && row < last - 1)) return;
    element.scrollTop = Math.max(0, row * ROW - height / 2) / scale;
  };
  return {
    box,
    onScroll: () => setTop(box.current?.scrollTop ?? 0),
    first,
    last,
    spacer,
    topOf: (row) => offset + (row - first) * ROW,
    show,
  };
}
