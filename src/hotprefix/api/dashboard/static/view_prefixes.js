// The prefixes that saved most.

import { h } from "./dom.js";
import { columns, lesson, panel, tenantName } from "./parts.js";
import { sample } from "./samples.js";
import { state } from "./state.js";
import { short, t, whole } from "./words.js";

export function prefixesView() {
  const data = state.prefixes;
  if (!data) return [h("p", { class: "note" }, t("loading"))];
  if (!data.prefixes.length) {
    return [h("section", { class: "panel" }, lesson(t("empty.prefixes.title"), t("empty.prefixes.text"), sample("twice")))];
  }
  const most = Math.max(...data.prefixes.map((one) => one.reused), 1);
  return [
    panel(
      "",
      t("prefixes.title"),
      h("p", { class: "note end" }, data.is_complete ? t("prefixes.all") : t("prefixes.some", { count: data.visited })),
      h(
        "div",
        { class: "scroll" },
        h(
          "table",
          { class: "tops" },
          h("caption", { class: "unseen" }, t("prefixes.title")),
          columns(["prefix"], ["saved", "num"], ["", "wide"], ["reuses", "num"], ["length", "num"], ["branches", "num wide"], ["tenant", "wide"], ["state", "wide"]),
          h("tbody", null, data.prefixes.map((one) => row(one, most))),
        ),
      ),
      h("p", { class: "note more" }, t("prefixes.note")),
    ),
  ];
}

function row(one, most) {
  return h(
    "tr",
    { "data-key": one.id },
    h("td", null, words(one)),
    h("td", { class: "num" }, short(one.reused)),
    h("td", { class: "wide" }, h("div", { class: "track mini" }, h("span", { class: "c-read", style: { width: `${(100 * one.reused) / most}%` } }))),
    h("td", { class: "num" }, whole(one.hits)),
    h("td", { class: "num" }, whole(one.tokens)),
    h("td", { class: "num wide dim" }, whole(one.branches)),
    h("td", { class: "wide dim nowrap" }, one.scene || tenantName(one.tenant)),
    h("td", { class: "wide" }, one.is_held && h("span", { class: "chip good" }, t("prefixes.held"))),
  );
}

/** Its beginning and its end: many prefixes begin alike. */
function brief(one) {
  const [head, tail] = [one.head, one.tail].map((text) => text.replace(/\s+/g, " "));
  const end = tail || head;
  return !tail && head.length < 78 ? head : `${head.slice(0, 44)} … ${end.slice(-30)}`;
}

function words(one) {
  if (one.head === undefined) return h("span", { class: "dim" }, t("prefixes.hidden"), " ", h("span", { class: "mono" }, one.id));
  const between = one.tokens - one.head_tokens - one.tail_tokens;
  const start = one.is_joint ? "… " : "";
  return h(
    "details",
    { class: "fold" },
    h("summary", null, h("span", { class: "one-line mono" }, start + brief(one))),
    h(
      "div",
      { class: "text mono", tabindex: 0 },
      one.is_joint && h("span", { class: "gap" }, t("prefixes.joint"), "\n"),
      one.head,
      between > 0 && h("span", { class: "gap" }, `\n… ${t("prefixes.between", { count: between })} …\n`),
      one.tail,
    ),
  );
}
