// What is looked at, and where that is remembered: the address has the view, the browser the preferences.

export const TABS = ["overview", "requests", "prefixes", "scenes", "caches"];
export const RANGES = ["900", "3600", "86400", "604800", "all"];
const USUAL = "3600";
const FILTERS = ["tenant", "scene", "reason"];

/** Without storage a preference lasts as long as the page. */
const kept = new Map();

export function stored(name) {
  try {
    return localStorage.getItem(`hotprefix.${name}`);
  } catch {
    return kept.get(name) ?? null;
  }
}

export function store(name, value) {
  try {
    if (value === null) localStorage.removeItem(`hotprefix.${name}`);
    else localStorage.setItem(`hotprefix.${name}`, value);
  } catch {
    kept.set(name, value);
  }
}

export const state = {
  visitor: null,
  problem: "",
  loginProblem: "",
  tab: "overview",
  range: USUAL,
  since: null,
  until: null,
  filters: { tenant: null, scene: null, reason: null },
  request: null,
  theme: stored("theme") ?? "auto",
  hidesText: stored("hides-text") === "yes",
  isLive: true,
  link: "wait",
  summary: null,
  engine: null,
  requests: null,
  hasMore: false,
  fresh: new Set(),
  prefixes: null,
  scenes: null,
  caches: null,
  detail: null,
  detailProblem: "",
};

/** Take over what the address says. */
export function readAddress() {
  const [tab, query] = location.hash.replace(/^#/, "").split("?");
  const wanted = new URLSearchParams(query ?? "");
  state.tab = TABS.includes(tab) ? tab : "overview";
  const range = wanted.get("last");
  state.range = RANGES.includes(range) ? range : USUAL;
  state.since = wanted.get("since");
  state.until = wanted.get("until");
  if (state.since || state.until) state.range = "own";
  for (const name of FILTERS) state.filters[name] = wanted.get(name);
  state.request = wanted.get("request");
}

/** The address of what is looked at, with some of it changed. */
export function address(changes = {}) {
  const now = { tab: state.tab, range: state.range, since: state.since, until: state.until, request: state.request, ...state.filters, ...changes };
  const query = new URLSearchParams();
  if (now.range === "own") {
    if (now.since) query.set("since", now.since);
    if (now.until) query.set("until", now.until);
  } else if (now.range !== USUAL) {
    query.set("last", now.range);
  }
  for (const name of [...FILTERS, "request"]) {
    if (now[name] !== null && now[name] !== undefined) query.set(name, now[name]);
  }
  const text = query.toString();
  return `#${now.tab}${text ? `?${text}` : ""}`;
}

/** The same as a question to the server. */
export function question() {
  const span = {
    last: state.range === "own" || state.range === "all" ? null : state.range,
    since: state.range === "own" ? state.since : null,
    until: state.range === "own" ? state.until : null,
  };
  return { ...span, ...state.filters };
}

/** Whether a request that just ended is among those looked at. */
export function isChosen(request) {
  if (state.until && Number(state.until) < request.at) return false;
  return FILTERS.every((name) => state.filters[name] === null || state.filters[name] === request[name]);
}

export function isFiltered() {
  return FILTERS.some((name) => state.filters[name] !== null);
}
