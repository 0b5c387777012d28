// The address is the state: each screen reads what it shows from the path and the query.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const ROOT = "/studio/";

export interface Place {
  /** The path below the root, in parts. */
  path: string[];
  query: URLSearchParams;
}

const moved = new EventTarget();

function here(): Place {
  const below = location.pathname.startsWith(ROOT) ? location.pathname.slice(ROOT.length) : "";
  const path = below.split("/").filter((part) => part !== "");
  return { path: path.map(decode), query: new URLSearchParams(location.search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function href(path: string[], values: Record<string, string | number | boolean | null | undefined> = {}): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return ROOT + path.map(encodeURIComponent).join("/") + (search === "" ? "" : `?${search}`);
}

/** Goes to another address; `replace` leaves no trace in the history. */
export function go(to: string, replace = false): void {
  if (to === location.pathname + location.search) return;
  if (replace) history.replaceState(history.state, "", to);
  else {
    // Where the page stood, for a return to it.
    history.replaceState({ ...(history.state as object | null), scroll: scrollY }, "");
    history.pushState(null, "", to);
  }
  moved.dispatchEvent(new Event("moved"));
}

/** Changes parts of the query of the present address; null removes one. */
export function setQuery(values: Record<string, string | number | null>, replace = false): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  const search = query.toString();
  go(location.pathname + (search === "" ? "" : `?${search}`), replace);
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const update = () => setPlace(here());
    moved.addEventListener("moved", update);
    addEventListener("popstate", update);
    return () => {
      moved.removeEventListener("moved", update);
      removeEventListener("popstate", update);
    };
  }, []);
  return place;
}

/** Goes once to where the page stood when it was left by a link, as soon as what was there is there again. */
export function useScrollBack(isThere: boolean): void {
  const wanted = useRef((history.state as { scroll?: number } | null)?.scroll);
  useLayoutEffect(() => {
    const top = wanted.current;
    if (!isThere || top === undefined) return;
    wanted.current = undefined;
    scrollTo(0, top);
  }, [isThere]);
}

/**
 * On another screen, begins at its top, with the focus on its heading, so that a screen reader says where it is. The
 * heading may come later than the screen: until it does, its frame has the focus.
 */
export function useFocusOnScreen(screen: string): void {
  const last = useRef(screen);
  useEffect(() => {
    if (last.current === screen) return;
    last.current = screen;
    const isBack = (history.state as { scroll?: number } | null)?.scroll !== undefined;
    if (!isBack) scrollTo(0, 0);
    const heading = document.querySelector<HTMLElement>("#content h1") ?? document.getElementById("content");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus({ preventScroll: true });
  }, [screen]);
}

/** Has links within the page followed without loading it again. */
export function followLinks(): void {
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = (event.target as Element | null)?.closest("a");
    if (link === null || link === undefined || link.target !== "" || link.origin !== location.origin) return;
    if (!link.pathname.startsWith(ROOT) || link.hash !== "") return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
