// What buttons, fields and keys do. Everything on the page that acts says so in `data-act`.

import { key } from "./api.js";
import { RANGES, TABS, state, store } from "./state.js";
import { chosenLanguage, speak, t } from "./words.js";

const THEMES = ["auto", "light", "dark"];

/** `page` has `go(changes)`, `draw()`, `reload()`, `restart()`, `connect()`, `more()` and `hover(index)`. */
export function wire(page) {
  const acts = clicks(page);
  document.addEventListener("click", (event) => {
    const target = event.target.closest("[data-act]");
    if (!target) return;
    event.preventDefault();
    event.stopPropagation();
    acts[target.dataset.act]?.(target);
  });
  document.addEventListener("change", (event) => changed(event.target, page));
  document.addEventListener("submit", (event) => submitted(event, page));
  document.addEventListener("keydown", (event) => pressed(event, page, acts));
  document.addEventListener("pointermove", (event) => page.hover(pointedAt(event)));
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  });
  for (const name of ["detail", "help"]) {
    const dialog = document.getElementById(name);
    // A click beside the content of an open dialog is one on the dialog itself.
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  }
  document.getElementById("detail").addEventListener("close", () => page.go({ request: null }));
}

function clicks(page) {
  return {
    tab: ({ dataset }) => page.go({ tab: dataset.tab }),
    range: ({ dataset }) => chooseRange(page, dataset.range),
    reason: ({ dataset }) => page.go({ reason: state.filters.reason === dataset.reason ? null : dataset.reason }),
    scene: ({ dataset }) => page.go({ tab: "requests", scene: dataset.scene }),
    clear: () => page.go({ tenant: null, scene: null, reason: null }),
    open: ({ dataset }) => page.go({ request: dataset.id }),
    close: () => document.getElementById("detail").close(),
    more: () => page.more(),
    pause: () => {
      state.isLive = !state.isLive;
      page.connect();
      say(t(state.isLive ? "live.on" : "live.paused"));
    },
    hide: () => {
      if (state.visitor?.is_redacted) return;
      state.hidesText = !state.hidesText;
      store("hides-text", state.hidesText ? "yes" : null);
      state.prefixes = null;
      say(t(state.hidesText ? "text.hidden" : "text.shown"));
      page.reload();
    },
    theme: () => {
      state.theme = THEMES[(THEMES.indexOf(state.theme) + 1) % THEMES.length];
      store("theme", state.theme === "auto" ? null : state.theme);
      if (state.theme === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = state.theme;
      say(t(`theme.${state.theme}`));
      page.draw();
    },
    language: async () => {
      const language = chosenLanguage() === "zh" ? "en" : "zh";
      store("language", language);
      await speak(language);
      page.draw();
    },
    help: () => page.help(),
    "close-help": () => document.getElementById("help").close(),
    copy: async ({ dataset }) => {
      await navigator.clipboard?.writeText(dataset.text);
      say(t("copied"));
    },
    logout: () => {
      key.clear();
      page.restart();
    },
  };
}

function chooseRange(page, range) {
  if (range !== "own") return page.go({ range, since: null, until: null });
  const now = Math.floor(Date.now() / 1000 + (state.skew ?? 0));
  return page.go({ range, since: String(now - 3600), until: String(now) });
}

function changed(field, page) {
  const { change, name } = field.dataset;
  if (change === "filter") page.go({ [name]: field.value === "*" ? null : field.value.slice(1) });
  if (change === "time") {
    const at = Date.parse(field.value);
    page.go({ range: "own", [name]: Number.isNaN(at) ? null : String(at / 1000) });
  }
}

function submitted(event, page) {
  if (event.target.dataset.submit !== "login") return;
  event.preventDefault();
  key.set(new FormData(event.target).get("key").trim());
  page.restart();
}

function pressed(event, page, acts) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const chart = event.target.closest?.("[data-keys=time]");
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (chart && step) {
    event.preventDefault();
    return page.hover(page.hovered === null ? Number(chart.dataset.count) - 1 : page.hovered + step, true);
  }
  const tab = event.target.closest?.("[role=tab]");
  if (tab && step) return moveTab(event, page, step);
  if (event.target.closest("input, select, textarea, dialog[open]")) return;
  const act = shortcut(event.key, page, acts);
  if (act) {
    event.preventDefault();
    act();
  }
}

function shortcut(pressedKey, page, acts) {
  if (state.visitor?.state !== "open") return { t: acts.theme, l: acts.language, "?": acts.help }[pressedKey];
  const tab = TABS[Number(pressedKey) - 1];
  if (tab) return () => page.go({ tab });
  const acted = {
    "?": acts.help,
    t: acts.theme,
    l: acts.language,
    h: acts.hide,
    p: acts.pause,
    x: acts.clear,
    j: () => moveRow(1),
    k: () => moveRow(-1),
    "[": () => moveRange(page, -1),
    "]": () => moveRange(page, 1),
    "/": () => document.querySelector(".filters select")?.focus(),
  };
  return acted[pressedKey];
}

function moveTab(event, page, step) {
  event.preventDefault();
  const tab = TABS[(TABS.indexOf(state.tab) + step + TABS.length) % TABS.length];
  page.go({ tab });
  document.getElementById(`tab-${tab}`)?.focus();
}

function moveRange(page, step) {
  const at = RANGES.indexOf(state.range);
  const range = RANGES[Math.min(RANGES.length - 1, Math.max(0, at + step))];
  page.go({ range, since: null, until: null });
}

function moveRow(step) {
  const rows = [...document.querySelectorAll("main [data-row]")];
  const at = rows.indexOf(document.activeElement);
  const next = at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, at + step));
  rows[next]?.focus();
}

function pointedAt(event) {
  const area = event.target.closest?.("[data-hover=time]");
  if (!area) return null;
  const { slot, count } = area.dataset;
  const at = (event.clientX - area.getBoundingClientRect().left) / Number(slot);
  return Math.max(0, Math.min(Number(count) - 1, Math.floor(at)));
}

/** For those who listen to the page. */
export function say(text) {
  document.getElementById("announce").textContent = text;
}
