// What the server holds: the arena by what its blocks do, and the tiers behind it.

import { h } from "./dom.js";
import { columns, panel } from "./parts.js";
import { state } from "./state.js";
import { bytes, percent, t, whole } from "./words.js";

const STATES = ["in_use", "pinned", "cached", "free"];

/** Two panels, for whoever sees the whole server. */
export function memoryPanels(width) {
  const { engine } = state;
  return engine && h("div", { class: `stack ${width}` }, arenaPanel(engine), tierPanel(engine));
}

function arenaPanel(engine) {
  const total = STATES.reduce((sum, name) => sum + (engine.blocks[name] ?? 0), 0);
  const rate = engine.queried_tokens ? engine.hit_tokens / engine.queried_tokens : null;
  const [precision, perToken] = Object.entries(engine.bytes_per_token)[0] ?? ["–", 0];
  return panel(
    "",
    t("arena.title"),
    h("p", { class: "note end" }, t("arena.bytes", { used: bytes(engine.arena_bytes), limit: bytes(engine.arena_limit_bytes) })),
    h(
      "div",
      { class: "track tall", role: "img", "aria-label": STATES.map((name) => `${t(`block.${name}`)} ${whole(engine.blocks[name] ?? 0)}`).join(", ") },
      STATES.map((name) => h("span", { class: `c-${name}`, style: { width: `${total ? (100 * (engine.blocks[name] ?? 0)) / total : 0}%` } })),
    ),
    h(
      "ul",
      { class: "key" },
      STATES.map((name) => h("li", { title: t(`block.${name}.help`) }, h("i", { class: `c-${name}` }), t(`block.${name}`), " ", h("b", null, whole(engine.blocks[name] ?? 0)))),
    ),
    h(
      "dl",
      { class: "facts" },
      fact("engine-rate", rate === null ? "–" : percent(rate), t("arena.rate.sub", { hit: whole(engine.hit_tokens), queried: whole(engine.queried_tokens) })),
      fact("running", whole(engine.running ?? 0), t("arena.waiting", { count: engine.waiting ?? 0 })),
      fact("evicted", whole(engine.evictions ?? 0), t("arena.preempted", { count: engine.preemptions ?? 0 })),
      fact("precision", precision, t("arena.per-token", { bytes: whole(perToken) })),
    ),
    notKept(engine),
  );
}

function fact(name, value, more) {
  return h("div", { "data-fact": name }, h("dt", null, t(`arena.${name}`)), h("dd", null, h("b", null, value), h("small", null, more)));
}

function notKept(engine) {
  const told = Object.entries(engine.not_kept).filter(([, count]) => count);
  return told.length > 0 && h("p", { class: "note more" }, t("arena.not-kept"), " ", told.map(([name, count]) => `${t(`not-kept.${name}`)} ${whole(count)}`).join(" · "));
}

function tierPanel(engine) {
  if (!engine.tiers.length) {
    return panel("", t("tiers.title"), null, h("p", { class: "note" }, t("tiers.none")), h("pre", { class: "try" }, h("code", null, "hotprefix serve --kv-ram 4G --kv-disk 20G")));
  }
  return panel(
    "",
    t("tiers.title"),
    h("p", { class: "note end" }, t("tiers.restored", { tokens: whole(engine.restored_tokens ?? 0) })),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        null,
        columns(["tier"], ["held"], ["blocks", "num"], ["hits", "num"], ["misses", "num"], ["errors", "num"]),
        h("tbody", null, engine.tiers.map(tierRow)),
      ),
    ),
  );
}

function tierRow(tier) {
  const part = tier.limit ? tier.bytes / tier.limit : 0;
  const faults = tier.errors + tier.damaged;
  return h(
    "tr",
    { "data-key": tier.name },
    h("td", { title: speeds(tier) }, t(`tier.${tier.name}`), !tier.up && [" ", h("span", { class: "chip lost" }, t("tier.down"))]),
    h(
      "td",
      { class: "nowrap" },
      h("div", { class: "track mini" }, h("span", { class: "c-cached", style: { width: `${100 * part}%` } })),
      h("small", { class: "dim" }, t("arena.bytes", { used: bytes(tier.bytes), limit: bytes(tier.limit) })),
    ),
    h("td", { class: "num" }, whole(tier.blocks)),
    h("td", { class: "num" }, whole(tier.hits)),
    h("td", { class: "num" }, whole(tier.misses)),
    h("td", { class: `num ${faults ? "bad-ink" : ""}` }, whole(faults)),
  );
}

function speeds(tier) {
  return t("tier.speeds", { read: speed(tier.read_bytes, tier.read_seconds), write: speed(tier.written_bytes, tier.write_seconds) });
}

function speed(size, time) {
  return size >= 1 << 20 && time > 0 ? `${bytes(size / time)}/s` : "–";
}
