// What stands around every view: heading, tabs, filters, the login form and the list of shortcuts.

import { h, icon } from "./dom.js";
import { meaning, sceneName, tenantName } from "./parts.js";
import { RANGES, TABS, isFiltered, state } from "./state.js";
import { maybe, t } from "./words.js";

const PATHS = {
  auto: "M10 3a7 7 0 1 0 0 14zM10 3a7 7 0 0 1 0 14",
  light: "M10 6.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7M10 1.5v2M10 16.5v2M1.5 10h2M16.5 10h2M4 4l1.4 1.4M14.6 14.6 16 16M4 16l1.4-1.4M14.6 5.4 16 4",
  dark: "M16.5 12A7 7 0 0 1 8 3.5a7 7 0 1 0 8.5 8.5z",
  shown: "M1.5 10S4.5 4.5 10 4.5 18.5 10 18.5 10 15.5 15.5 10 15.5 1.5 10 1.5 10M10 7.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5",
  hidden: "M3 3l14 14M8.2 5A8 8 0 0 1 10 4.7c5.5 0 8.5 5.3 8.5 5.3a14 14 0 0 1-2.3 2.9M12.7 15A8 8 0 0 1 10 15.3C4.5 15.3 1.5 10 1.5 10a14 14 0 0 1 3.2-3.7",
};
const SHORTCUTS = [
  ["1 – 5", "tabs"],
  ["[ ]", "range"],
  ["/", "filter"],
  ["j k", "rows"],
  ["Enter", "open"],
  ["Esc", "close"],
  ["← →", "chart"],
  ["x", "clear"],
  ["p", "pause"],
  ["h", "hide"],
  ["t", "theme"],
  ["l", "language"],
  ["?", "help"],
];

export function frame(body) {
  const { visitor } = state;
  if (!visitor || visitor.state !== "open") return [bar(), h("main", { id: "main", tabindex: -1 }, visitor ? gate(visitor) : waiting())];
  return [
    bar(),
    filters(),
    h(
      "main",
      { id: "main", tabindex: -1 },
      state.problem && h("section", { class: "panel fault", role: "alert" }, state.problem),
      h("div", { role: "tabpanel", id: "view", "aria-labelledby": `tab-${state.tab}` }, body),
    ),
  ];
}

function waiting() {
  return h("section", { class: "panel gate" }, h("p", null, state.problem || t("loading")));
}

function bar() {
  const { visitor } = state;
  const isIn = visitor?.state === "open";
  return h(
    "div",
    { class: "top" },
    h(
      "header",
      { class: "top-in" },
      h("h1", { class: "mark" }, h("img", { src: "dashboard/static/icon.svg", alt: "" }), "Hotprefix"),
      isIn && h("span", { class: "served" }, h("b", null, visitor.model), " · ", t("served.profile", { profile: visitor.profile }), visitor.tenant === null ? "" : ` · ${tenantName(visitor.tenant)}`),
      h("div", { class: "tools" }, isIn && liveButton(), isIn && hideButton(visitor), languageButton(), themeButton(), helpButton(), isIn && visitor.has_key && h("button", { type: "button", class: "btn bare", "data-act": "logout" }, t("logout"))),
    ),
    isIn &&
      h(
        "div",
        { class: "tabs", role: "tablist", "aria-label": t("tabs") },
        TABS.map((tab) =>
          h(
            "button",
            { type: "button", class: "tab", id: `tab-${tab}`, role: "tab", "aria-selected": String(tab === state.tab), "aria-controls": "view", tabindex: tab === state.tab ? 0 : -1, "data-act": "tab", "data-tab": tab },
            t(`tab.${tab}`),
          ),
        ),
      ),
  );
}

function liveButton() {
  const [dot, text] = !state.isLive ? ["", "live.paused"] : state.link === "on" ? ["on", "live.on"] : ["wait", "live.wait"];
  return h(
    "button",
    { type: "button", class: "btn bare live", "data-act": "pause", "aria-pressed": String(!state.isLive), title: t(state.isLive ? "live.pause" : "live.go-on") },
    h("span", { class: `dot ${dot}` }),
    t(text),
  );
}

function hideButton(visitor) {
  const isHidden = state.hidesText || visitor.is_redacted;
  return h(
    "button",
    {
      type: "button",
      class: "btn bare",
      "data-act": "hide",
      "aria-pressed": String(isHidden),
      "aria-disabled": visitor.is_redacted ? "true" : null,
      "aria-label": t(isHidden ? "text.hidden" : "text.shown"),
      title: visitor.is_redacted ? t("text.redacted") : t(isHidden ? "text.show" : "text.hide"),
    },
    icon(isHidden ? PATHS.hidden : PATHS.shown),
  );
}

function languageButton() {
  return h("button", { type: "button", class: "btn bare", "data-act": "language", title: t("language"), lang: t("language.other-code") }, t("language.other"));
}

function themeButton() {
  return h("button", { type: "button", class: "btn bare", "data-act": "theme", "aria-label": t(`theme.${state.theme}`), title: t(`theme.${state.theme}`) }, icon(PATHS[state.theme]));
}

function helpButton() {
  return h("button", { type: "button", class: "btn bare", "data-act": "help", "aria-label": t("help.title"), title: t("help.title") }, "?");
}

/** Prefixes and caches are as they are now: of them only the tenant can be chosen. */
function filters() {
  const choices = state.summary?.choices ?? { tenant: [], scene: [], reason: [] };
  const isPast = state.tab !== "prefixes" && state.tab !== "caches";
  const tenant = state.visitor.tenant === null && choice("tenant", choices.tenant, tenantName);
  if (!isPast) return tenant && h("div", { class: "filters", role: "search", "aria-label": t("filters") }, tenant);
  return h(
    "div",
    { class: "filters", role: "search", "aria-label": t("filters") },
    h(
      "div",
      { class: "segments", role: "group", "aria-label": t("range") },
      RANGES.map((range) => h("button", { type: "button", "aria-pressed": String(state.range === range), "data-act": "range", "data-range": range }, t(`range.${range}`))),
      h("button", { type: "button", "aria-pressed": String(state.range === "own"), "data-act": "range", "data-range": "own" }, t("range.own")),
    ),
    state.range === "own" && ["since", "until"].map(timeField),
    tenant,
    choice("scene", choices.scene, sceneName),
    choice("reason", choices.reason, (reason) => (maybe(`reason.${reason}`) ? `${reason} – ${meaning(reason)}` : reason)),
    isFiltered() && h("button", { type: "button", class: "btn bare", "data-act": "clear" }, t("clear")),
  );
}

function choice(name, known, shown) {
  const chosen = state.filters[name];
  const values = known.map(([value]) => value);
  if (chosen !== null && !values.includes(chosen)) values.unshift(chosen);
  const counts = new Map(known);
  return h(
    "label",
    { class: "choice" },
    h("span", null, t(`column.${name}`)),
    h(
      "select",
      { "data-change": "filter", "data-name": name },
      h("option", { value: "*", selected: chosen === null }, t("any")),
      values.map((value) => h("option", { value: `=${value}`, selected: value === chosen }, counts.has(value) ? `${shown(value)} (${counts.get(value)})` : shown(value))),
    ),
  );
}

function timeField(name) {
  const at = state[name];
  const local = at ? new Date(Number(at) * 1000 - new Date(Number(at) * 1000).getTimezoneOffset() * 60_000).toISOString().slice(0, 16) : "";
  return h("label", { class: "choice" }, h("span", null, t(`range.${name}`)), h("input", { type: "datetime-local", value: local, "data-change": "time", "data-name": name }));
}

function gate(visitor) {
  const isKey = visitor.state === "key";
  return h(
    "section",
    { class: "panel gate" },
    h("h2", null, t(isKey ? "gate.title" : "gate.closed")),
    h("p", null, isKey ? t("gate.text") : visitor.message),
    isKey && [
      h(
        "form",
        { "data-submit": "login" },
        h("input", { type: "password", name: "key", autocomplete: "off", spellcheck: "false", required: true, placeholder: "hpk_…", "aria-label": t("gate.key") }),
        h("button", { type: "submit", class: "btn primary" }, t("gate.open")),
      ),
      state.loginProblem && h("p", { class: "bad-ink", role: "alert" }, state.loginProblem),
      h("p", { class: "note" }, t("gate.kept")),
      h("pre", { class: "try" }, h("code", null, "hotprefix keys create ops --admin")),
    ],
  );
}

export function helpView() {
  return [
    h("header", null, h("h2", { id: "help-title" }, t("help.title")), h("button", { type: "button", class: "btn", "data-act": "close-help", autofocus: true }, t("close"))),
    h(
      "table",
      null,
      h(
        "tbody",
        null,
        SHORTCUTS.map(([keys, name]) => h("tr", null, h("td", { class: "nowrap" }, keys.split(" ").map((one) => (one === "–" ? " – " : [h("kbd", null, one), " "]))), h("td", null, t(`shortcut.${name}`)))),
      ),
    ),
  ];
}
