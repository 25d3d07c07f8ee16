// Questions to the server. The key lives in this tab's session storage and goes out in a header:
// there is no cookie, so nothing is sent that another page could make the browser send.

const BASE = new URL("../api/", import.meta.url);
const KEY = "hotprefix.key";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Where a browser keeps nothing for pages, the key lasts as long as this one. */
let held = "";

function storage(act) {
  try {
    return act(sessionStorage);
  } catch {
    return null;
  }
}

export const key = {
  get: () => storage((kept) => kept.getItem(KEY)) ?? held,
  set: (value) => {
    held = value;
    storage((kept) => kept.setItem(KEY, value));
  },
  clear: () => {
    held = "";
    storage((kept) => kept.removeItem(KEY));
  },
};

function headers() {
  return key.get() ? { authorization: `Bearer ${key.get()}` } : {};
}

/** The JSON at a path; values that are null or undefined stay out of the query. Throws `Refused`. */
export async function ask(path, query = {}, signal = undefined) {
  const url = new URL(path, BASE);
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) url.searchParams.set(name, value);
  }
  let response;
  try {
    response = await fetch(url, { headers: headers(), cache: "no-store", credentials: "omit", signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "");
  }
  if (response.ok) return body(response);
  const document = await body(response).catch(() => ({}));
  throw new Refused(response.status, document.error?.message ?? response.statusText);
}

/** What was answered. A body that stops half-way is no answer, and an aborted one is not shown. */
async function body(response) {
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "");
  }
}

/** Call `told(event, data)` for each event of the live stream, until it ends or is aborted. */
export async function listen(told, signal) {
  const response = await fetch(new URL("stream", BASE), { headers: headers(), cache: "no-store", credentials: "omit", signal });
  if (!response.ok) throw new Refused(response.status, response.statusText);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const fields = Object.fromEntries(
        event
          .split("\n")
          .filter((line) => line.includes(": ") && !line.startsWith(":"))
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      if (fields.event) told(fields.event, JSON.parse(fields.data ?? "{}"));
    }
  }
}
