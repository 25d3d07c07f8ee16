// What is kept on purpose: named caches, entries that markers and sessions wrote, stored responses.

import { h } from "./dom.js";
import { columns, lesson, panel, sceneName, tenantName } from "./parts.js";
import { sample } from "./samples.js";
import { state } from "./state.js";
import { bytes, lifetime, t, whole } from "./words.js";

export function cachesView() {
  const data = state.caches;
  if (!data) return [h("p", { class: "note" }, t("loading"))];
  return [
    h(
      "div",
      { class: "grid" },
      namedPanel(data),
      entryPanel(data),
      panel("w12", t("responses.title"), null, h("p", { class: "note" }, t("responses.text", { count: data.responses, bytes: bytes(data.responses_bytes) }))),
    ),
  ];
}

function namedPanel(data) {
  if (!data.named.length) {
    return panel("w12", t("named.title"), null, lesson(t("empty.named.title"), t("empty.named.text"), sample("named")));
  }
  return panel(
    "w12",
    t("named.title"),
    h("p", { class: "note end" }, t("named.n", { count: data.named_count })),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        null,
        h("caption", { class: "unseen" }, t("named.title")),
        columns(["name"], ["state"], ["tokens", "num"], ["hits", "num"], ["expires", "num"], ["tenant", "wide"], ["note", "wide"]),
        h("tbody", null, data.named.map(namedRow)),
      ),
    ),
  );
}

function namedRow(cache) {
  const left = cache.expires_at === null ? t("named.pinned") : lifetime(Math.max(0, cache.expires_at - now()));
  return h(
    "tr",
    { "data-key": `${cache.tenant}/${cache.name}` },
    h("td", null, h("b", null, cache.name)),
    h("td", null, h("span", { class: `chip ${cache.state === "warm" ? "good" : "lost"}` }, t(`named.${cache.state}`))),
    h("td", { class: "num" }, whole(cache.tokens)),
    h("td", { class: "num" }, whole(cache.hits)),
    h("td", { class: "num" }, left),
    h("td", { class: "wide dim" }, tenantName(cache.tenant)),
    h("td", { class: "wide dim" }, cache.note ?? ""),
  );
}

function now() {
  return Date.now() / 1000 + (state.skew ?? 0);
}

function entryPanel(data) {
  if (!data.entries.length) {
    return panel("w12", t("entries.title"), null, lesson(t("empty.entries.title"), t("empty.entries.text"), sample("marker")));
  }
  return panel(
    "w12",
    t("entries.title"),
    h("p", { class: "note end" }, t("entries.n", { count: data.entries_count, tokens: whole(data.entries_tokens) })),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        null,
        h("caption", { class: "unseen" }, t("entries.title")),
        columns(["entry"], ["tokens", "num"], ["ttl", "num"], ["expires", "num"], ["", "wide"], ["tenant", "wide"], ["scene", "wide"]),
        h("tbody", null, data.entries.map(entryRow)),
      ),
    ),
  );
}

function entryRow(entry) {
  const part = entry.ttl ? Math.min(1, entry.expires_in / entry.ttl) : 0;
  return h(
    "tr",
    { "data-key": entry.id },
    h("td", { class: "mono" }, entry.id),
    h("td", { class: "num" }, whole(entry.tokens)),
    h("td", { class: "num dim" }, lifetime(entry.ttl)),
    h("td", { class: "num" }, lifetime(entry.expires_in)),
    h("td", { class: "wide" }, h("div", { class: "track mini" }, h("span", { class: "c-pinned", style: { width: `${100 * part}%` } }))),
    h("td", { class: "wide dim" }, tenantName(entry.tenant)),
    h("td", { class: "wide dim" }, sceneName(entry.scene)),
  );
}
