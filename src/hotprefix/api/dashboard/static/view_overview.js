// The overview: what the cache gave, what it could have given, what the server holds.

import { firstChart, firstTable } from "./chart_first.js";
import { timeChart, timeTable, told, filled } from "./chart_time.js";
import { h } from "./dom.js";
import { classKey, columns, figures, lesson, meaning, panel } from "./parts.js";
import { requestTable } from "./view_requests.js";
import { state } from "./state.js";
import { sample } from "./samples.js";
import { memoryPanels } from "./view_memory.js";
import { lifetime, money, percent, seconds, short, t, whole } from "./words.js";

export function overview(width, hovered) {
  const { summary } = state;
  if (!summary) return [h("p", { class: "note" }, t("loading"))];
  if (!summary.totals.length) {
    return [
      h("section", { class: "panel" }, lesson(t("empty.requests.title"), t("empty.requests.text"), sample("twice"))),
      h("div", { class: "below" }, memoryPanels("")),
    ];
  }
  const half = width > 1000;
  const wide = half ? Math.floor(((width - 14 * 11) / 12) * 8 + 14 * 7) - 34 : width - 34;
  const narrow = half ? Math.floor(((width - 14 * 11) / 12) * 4 + 14 * 3) - 34 : width - 34;
  return [
    tiles(summary),
    h(
      "div",
      { class: "grid" },
      timePanel(summary, Math.max(280, wide), hovered),
      firstPanel(summary, Math.max(260, narrow)),
      reasonPanel(summary),
      memoryPanels("w5"),
      panel(
        "w12",
        t("recent.title"),
        h("a", { class: "note end link", href: "#requests", "data-act": "tab", "data-tab": "requests" }, t("recent.all")),
        requestTable((state.requests ?? []).slice(0, 8)),
      ),
      explained(),
    ),
  ];
}

/** Sums over currencies: tokens and requests add up, money does not. */
function sums(totals) {
  const add = (name) => totals.reduce((sum, total) => sum + total[name], 0);
  return Object.fromEntries(
    ["requests", "requests_hit", "prompt", "read", "written", "computed", "free", "output", "lost_tokens"].map((name) => [name, add(name)]),
  );
}

function amounts(totals, name) {
  return totals.map((total) => money(total[name], total.currency)).join(" + ");
}

function tile(name, big, sub, kind = "") {
  return h(
    "dl",
    { class: `panel tile ${kind}`, "data-tile": name, title: t(`tile.${name}.help`) },
    h("dt", null, t(`tile.${name}`)),
    h("dd", { class: "big" }, big),
    h("dd", { class: "sub" }, sub),
  );
}

function tiles(summary) {
  const sum = sums(summary.totals);
  const { hit, miss } = summary.first_token;
  const avoidable = summary.reasons.reduce((all, reason) => all + reason.avoidable_tokens, 0);
  const faster = hit.p50 && miss.p50 ? miss.p50 / hit.p50 : null;
  return h(
    "div",
    { class: "tiles" },
    tile("rate", percent(sum.prompt ? sum.read / sum.prompt : 0), t("tile.rate.sub", { read: whole(sum.read), prompt: whole(sum.prompt) }), "lead"),
    tile("saved", short(sum.read), t("tile.saved.sub", { computed: whole(sum.computed + sum.written) })),
    tile("money", amounts(summary.totals, "saved_money"), t("tile.money.sub", { spent: amounts(summary.totals, "money") })),
    tile(
      "lost",
      short(sum.lost_tokens),
      t("tile.lost.sub", { avoidable: whole(avoidable), money: amounts(summary.totals, "lost_money") }),
      sum.lost_tokens ? "bad" : "",
    ),
    tile(
      "ttft",
      seconds(hit.p50),
      faster
        ? t("tile.ttft.sub", { miss: seconds(miss.p50), times: faster >= 10 ? whole(faster) : faster.toFixed(1) })
        : t("tile.ttft.miss", { miss: seconds(miss.p50) }),
    ),
    tile("requests", short(sum.requests), t("tile.requests.sub", { hit: whole(sum.requests_hit), output: short(sum.output) })),
  );
}

function timePanel(summary, width, hovered) {
  const { series } = summary;
  const buckets = filled(series);
  const pointed = hovered === null ? null : buckets[Math.min(hovered, buckets.length - 1)];
  const sum = sums(summary.totals);
  return panel(
    "w8",
    t("time.title"),
    h("p", { class: "note end" }, t("time.step", { step: lifetime(series.step) })),
    h("p", { class: "readout", id: "time-readout", "aria-live": "polite" }, pointed ? told(pointed, series.step, summary.now) : t("time.hint")),
    h(
      "div",
      { class: "plot", tabindex: 0, role: "group", "aria-label": t("time.label"), "aria-describedby": "time-readout", "data-keys": "time", "data-count": buckets.length },
      timeChart(series, width, hovered),
    ),
    classKey({ read: whole(sum.read), written: whole(sum.written), computed: whole(sum.computed) }),
    figures(timeTable(series)),
  );
}

function firstPanel(summary, width) {
  const first = summary.first_token;
  const known = first.hit.count + first.miss.count;
  return panel(
    "w4",
    t("first.title"),
    first.is_sample && h("p", { class: "note end" }, t("first.sample", { count: known })),
    known
      ? [
          h(
            "ul",
            { class: "key" },
            ["hit", "miss"].map((name) =>
              h("li", null, h("i", { class: name === "hit" ? "c-read" : "c-miss" }), t(`first.${name}`), " ", h("b", null, whole(first[name].count))),
            ),
          ),
          firstChart(first, width),
          firstTable(first),
        ]
      : h("p", { class: "note" }, t("first.none")),
  );
}

function reasonPanel(summary) {
  const groups = new Map();
  for (const group of summary.reasons) {
    const one = groups.get(group.reason) ?? { reason: group.reason, requests: 0, lost_tokens: 0, money: [], avoidable: 0 };
    one.requests += group.requests;
    one.lost_tokens += group.lost_tokens;
    one.avoidable = group.avoidable_tokens;
    if (Number(group.lost_money)) one.money.push(money(group.lost_money, group.currency));
    groups.set(group.reason, one);
  }
  const fine = groups.get("NONE")?.requests ?? 0;
  const rest = [...groups.values()].filter((one) => one.reason !== "NONE");
  rest.sort((a, b) => b.lost_tokens - a.lost_tokens || b.requests - a.requests);
  const most = Math.max(...rest.map((one) => one.lost_tokens), 1);
  return panel(
    "w7",
    t("reasons.title"),
    h("p", { class: "note end" }, t("reasons.fine", { count: fine })),
    rest.length
      ? h(
          "table",
          { class: "reasons" },
          h("caption", { class: "unseen" }, t("reasons.title")),
          columns(["reason"], ["", "wide"], ["lost", "num"], ["requests", "num"]),
          h("tbody", null, rest.map((one) => reasonRow(one, most))),
        )
      : h("p", { class: "note" }, t("reasons.none")),
  );
}

function reasonRow(one, most) {
  const cost = one.money.length ? `${whole(one.lost_tokens)} · ${one.money.join(" + ")}` : whole(one.lost_tokens);
  return h(
    "tr",
    { "data-key": one.reason },
    h(
      "td",
      null,
      h("button", { type: "button", class: "link mono", "data-act": "reason", "data-reason": one.reason, title: t("reasons.filter") }, one.reason),
      h("span", { class: "meaning" }, meaning(one.reason)),
    ),
    h(
      "td",
      { class: "wide" },
      one.lost_tokens > 0 && h("div", { class: one.avoidable ? "bar" : "bar calm", style: { width: `${(100 * one.lost_tokens) / most}%` } }),
    ),
    h("td", { class: "num", title: one.avoidable ? t("reasons.avoidable", { tokens: whole(one.avoidable) }) : t("reasons.unavoidable") }, cost),
    h("td", { class: "num dim" }, whole(one.requests)),
  );
}

function explained() {
  const names = ["rate", "engine", "saved", "money", "lost", "ttft"];
  return h(
    "details",
    { class: "panel w12 words" },
    h("summary", null, t("words.title")),
    h(
      "dl",
      null,
      names.map((name) => [h("dt", null, t(`words.${name}`)), h("dd", null, t(`words.${name}.text`))]),
    ),
  );
}
