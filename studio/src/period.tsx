// The first and the last day of what a page shows, which are in the address.

import type { JSX } from "preact";
import { setQuery } from "./router";

/** The start of a day of this place as a time of the daemon, and back. */
function timeOf(day: string): string {
  return day === "" ? "" : new Date(`${day}T00:00:00`).toISOString();
}

function dayOf(time: string | null): string {
  const date = new Date(time ?? "");
  if (Number.isNaN(date.getTime())) return "";
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

export function Period({ place }: { place: URLSearchParams }): JSX.Element {
  return (
    <>
      {(["since", "before"] as const).map((name) => (
        <label key={name}>
          {name === "since" ? "From" : "Before"}
          <input
            type="date"
            key={place.get(name)}
            defaultValue={dayOf(place.get(name))}
            onChange={(event) => setQuery({ [name]: timeOf(event.currentTarget.value) })}
          />
        </label>
      ))}
    </>
  );
}
