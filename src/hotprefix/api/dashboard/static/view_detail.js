// One request, down to the first character that differs from an earlier prompt.

import { h } from "./dom.js";
import { classBar, classKey, detailText, meaning, reasonChip, sceneName, tenantName } from "./parts.js";
import { state } from "./state.js";
import { promptName } from "./view_requests.js";
import { fullTime, isChinese, maybe, money, percent, seconds, t, whole } from "./words.js";

export function detailView() {
  const { detail } = state;
  if (state.detailProblem) return [top(t("detail.problem")), h("section", null, h("p", null, state.detailProblem))];
  if (!detail) return [top(t("loading"))];
  return [
    top(meaning(detail.reason), detail),
    h("section", null, advice(detail), tokens(detail), facts(detail)),
    difference(detail),
    detail.comparison && blocks(detail.comparison),
  ];
}

function top(title, detail) {
  return h(
    "div",
    { class: "drawer-top" },
    h("div", null, detail && [reasonChip(detail), " ", detail.detail && h("span", { class: "chip" }, detailText(detail))], h("h2", { id: "detail-title" }, title)),
    h("button", { type: "button", class: "btn", "data-act": "close", autofocus: true }, t("close"), " ", h("kbd", { "aria-hidden": "true" }, "Esc")),
  );
}

function advice(detail) {
  const text = isChinese() ? detail.advice_zh : detail.advice_en;
  return text && h("p", { class: `advice ${detail.avoidable && detail.lost_tokens ? "" : "calm"}` }, text);
}

function tokens(detail) {
  const total = detail.prompt || 1;
  const place = (100 * detail.ideal) / total;
  const side = place < 20 ? "left" : place > 80 ? "right" : "";
  const known = ["read", "written", "computed", "free"].filter((name) => detail[name]);
  return [
    h("h3", null, t("detail.tokens", { count: detail.prompt })),
    h(
      "div",
      { class: "ruler" },
      classBar(detail, "tall"),
      detail.lost_tokens > 0 &&
        h("div", { class: `ideal ${side}`, style: { left: `${place}%` } }, h("span", null, t("detail.ideal", { ideal: whole(detail.ideal), lost: whole(detail.lost_tokens) }))),
    ),
    classKey(Object.fromEntries(known.map((name) => [name, `${whole(detail[name])} (${percent(detail[name] / total)})`]))),
  ];
}

function facts(detail) {
  const lost = Number(detail.lost_money);
  const figures = [
    ["ttft", seconds(detail.first_token)],
    ["total", seconds(detail.total)],
    ["output", t("tokens.n", { count: detail.output })],
    ["cost", money(detail.money, detail.currency)],
    ["lost-cost", lost > 0 ? money(detail.lost_money, detail.currency) : "–"],
  ];
  const isCache = detail.dialect === "/v1/caches";
  const list = [
    ["time", fullTime(detail.at)],
    ["mode", t(`mode.${detail.mode}`)],
    ["evidence", maybe(`evidence.${detail.evidence}`) ?? detail.evidence],
    ["avoidable", t(detail.avoidable ? "yes" : "no")],
    ["tenant", tenantName(detail.tenant)],
    ["scene", sceneName(detail.scene)],
    detail.prompt_name && ["prompt-name", promptName(detail)],
    ["model", detail.model],
    ["api", detail.dialect],
    ["profile", detail.profile],
    ["status", isCache ? detail.status : `${detail.status} · ${maybe(`finish.${detail.finish}`) ?? detail.finish}`],
    ["id", h("span", { class: "mono" }, detail.request_id)],
  ].filter(Boolean);
  return [
    h("dl", { class: "facts" }, figures.map(([name, value]) => h("div", { "data-fact": name }, h("dt", null, t(`fact.${name}`)), h("dd", null, h("b", null, value))))),
    h("dl", { class: "facts rest" }, list.map(([name, value]) => h("div", { "data-fact": name }, h("dt", null, t(`fact.${name}`)), h("dd", null, value)))),
  ];
}

function difference(detail) {
  const told = detail.divergence;
  const seen = detail.comparison?.difference ?? null;
  // Another model is another place than that of the words; then the ledger's own excerpt is shown.
  const found = seen && (!told || told.token === seen.token) ? seen : null;
  if (!found && !told) return detail.comparison && h("section", null, h("h3", null, t("difference.title")), h("p", { class: "note" }, t("difference.none")));
  const words = found?.pieces ? found : excerptWords(told);
  return h(
    "section",
    { id: "difference" },
    h("h3", null, told ? t("difference.title") : t("difference.free")),
    h(
      "p",
      { class: "place" },
      h("span", null, t("difference.path"), " ", h("code", { "data-path": "" }, told?.path ?? found.path)),
      h("span", null, t("difference.token"), " ", h("code", null, whole(told?.token ?? found.token))),
      (found?.char ?? null) !== null && h("span", null, t("difference.char"), " ", h("code", { "data-char": "" }, whole(found.char))),
      detail.comparison && h("span", null, t("difference.age", { age: seconds(Math.max(0, detail.comparison.seconds)) })),
    ),
    words ? [side("old", words), side("new", words), characters(found)] : h("p", { class: "note" }, hidden(told, found)),
  );
}

/** Why there are no words. */
function hidden(told, found) {
  if (state.hidesText || state.visitor?.is_redacted || (told && isHidden(told))) return t("difference.hidden");
  return t(found ? "difference.tokens-only" : "difference.gone");
}

/** Lengths stand in the place of words where the server was told to keep none. */
function isHidden({ before, after }) {
  return (!before && !after) || /^<\d+ characters>$/.test(before || after);
}

/** From the few characters that the ledger keeps. */
function excerptWords(told) {
  if (!told || isHidden(told)) return null;
  const [left, right] = [[...told.before], [...told.after]];
  let same = 0;
  while (same < Math.min(left.length, right.length) && left[same] === right[same]) same += 1;
  const pieces = [
    ["old", left.slice(same).join("")],
    ["new", right.slice(same).join("")],
  ];
  return { lead: left.slice(0, same).join(""), pieces: pieces.filter(([, text]) => text), is_cut: true };
}

/** One prompt's words; the first character behind what both begin with is the first that differs. */
function side(name, { lead, pieces, is_cut: isCut }) {
  const mine = pieces.filter(([kind]) => kind === "same" || kind === name);
  const shown = mine.map(([kind, text], index) => {
    const isChanged = kind !== "same";
    const [head, ...rest] = [...text];
    const first = index ? visible(head, isChanged) : h("span", { class: "first", "data-first": name }, visible(head, true));
    const all = [first, visible(rest.join(""), isChanged)];
    return isChanged ? h("mark", null, all) : all;
  });
  return h(
    "div",
    { class: `side ${name}`, "data-side": name },
    h("span", null, t(`difference.${name}`)),
    h(
      "pre",
      { tabindex: 0 },
      isCut && h("span", { class: "ghost" }, "… "),
      visible(lead),
      mine.length ? shown : h("span", { class: "first", "data-first": name }, "⟨∎⟩"),
      h("span", { class: "ghost" }, " …"),
    ),
  );
}

const GHOSTS = { "\n": "↵\n", "\t": "→\t", "\u00a0": "⍽", "\u200b": "⟨ZWSP⟩", "\ufeff": "⟨BOM⟩", "\u3000": "□", "\r": "␍" };

/** What turns the direction of a text would make it read as another one; in a difference, nothing hides. */
const TURNS = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;
const HIDES = /[\p{Cc}\p{Cf}]/u;

function code(char) {
  return `⟨U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** Characters that can't be seen are shown by others; blanks only where they are part of a difference. */
function visible(text, isChanged = false) {
  const parts = [];
  let plain = "";
  for (const char of text) {
    const known = char === " " && isChanged ? "·" : GHOSTS[char];
    const ghost = known ?? ((isChanged ? HIDES : TURNS).test(char) ? code(char) : undefined);
    if (!ghost) {
      plain += char;
      continue;
    }
    parts.push(plain, h("span", { class: "ghost" }, ghost));
    plain = "";
  }
  return [...parts, plain].filter((part) => part !== "");
}

function characters(found) {
  if (!found || (!found.old_char && !found.new_char)) return null;
  const told = (name) => {
    const char = found[`${name}_char`];
    return h("span", null, t(`difference.${name}-char`), " ", char ? [h("code", null, char.code), " ", char.name] : t("difference.end"));
  };
  return h("p", { class: "chars" }, told("old"), told("new"));
}

function blocks(comparison) {
  const rows = collapsed(comparison.blocks);
  const states = [...new Set(comparison.blocks.map((one) => one.state))];
  return h(
    "section",
    null,
    h("h3", null, t("blocks.title")),
    h("p", { class: "note" }, t("blocks.shared", { shared: whole(comparison.shared_tokens), tokens: whole(comparison.new_tokens) })),
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        { class: "blocks" },
        h("thead", null, h("tr", null, h("th", null), ["state", "old", "old-tokens", "new", "new-tokens"].map((name) => h("th", { scope: "col", class: name.endsWith("tokens") ? "num" : "" }, t(`blocks.${name}`))))),
        h("tbody", null, rows.map(blockRow)),
      ),
    ),
    h("ul", { class: "key" }, states.map((name) => h("li", null, h("i", { class: `b-${name}` }), t(`state.${name}`)))),
  );
}

/** Long runs of one state become their first, a line that counts, and their last. */
function collapsed(all) {
  const rows = [];
  for (let at = 0; at < all.length; ) {
    let end = at;
    while (end < all.length && all[end].state === all[at].state) end += 1;
    if (end - at > 4) rows.push(all[at], { state: all[at].state, between: all.slice(at + 1, end - 1) }, all[end - 1]);
    else rows.push(...all.slice(at, end));
    at = end;
  }
  return rows;
}

function blockRow(row) {
  const swatch = h("td", null, h("span", { class: `swatch b-${row.state}` }));
  if (row.between) {
    const sum = row.between.reduce((all, one) => all + (one.new ?? one.old).tokens, 0);
    return h("tr", null, swatch, h("td", { class: "dim", colspan: 5 }, t("blocks.between", { count: row.between.length, tokens: whole(sum) })));
  }
  return h("tr", null, swatch, h("td", { class: "nowrap" }, t(`state.${row.state}`)), cells(row.old), cells(row.new));
}

function cells(block) {
  if (!block) return [h("td", { class: "dim" }, "–"), h("td", { class: "num dim" }, "–")];
  return [h("td", null, h("span", { class: "mono" }, block.path), " ", h("span", { class: "dim" }, block.role)), h("td", { class: "num" }, whole(block.tokens))];
}
