// Times to the first token on a logarithmic axis: hits grow upwards, misses downwards.

import { h, s } from "./dom.js";
import { seconds, t, whole } from "./words.js";

const HALF = 66;
const MIDDLE = 84;
const HEIGHT = 190;
const LEFT = 6;
const RIGHT = 6;

export function firstChart(first, width) {
  const { bounds } = first;
  const used = bounds.map((_, index) => index).concat(bounds.length).filter((index) => first.hit.bins[index] || first.miss.bins[index]);
  const from = Math.max(1, Math.min(...used) - 1);
  const to = Math.min(bounds.length - 1, Math.max(...used) + 1);
  const low = Math.log10(bounds[from - 1]);
  const high = Math.log10(bounds[to]);
  const inner = width - LEFT - RIGHT;
  const x = (value) => LEFT + ((Math.log10(value) - low) / (high - low)) * inner;
  const most = Math.max(...first.hit.bins, ...first.miss.bins, 1);
  return s(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, "aria-hidden": "true" },
    decades(bounds[from - 1], bounds[to]).map((value) => [
      s("line", { class: "rule", x1: x(value), x2: x(value), y1: MIDDLE - HALF, y2: MIDDLE + HALF }),
      s("text", { x: x(value), y: HEIGHT - 8, "text-anchor": anchor(x(value), width) }, seconds(value).replace(/[.,]0(0)?(?= )/, "")),
    ]),
    bars(first.hit, "f-hit", -1, { bounds, from, to, x, most }),
    bars(first.miss, "f-miss", 1, { bounds, from, to, x, most }),
    s("line", { class: "axis", x1: LEFT, x2: width - RIGHT, y1: MIDDLE, y2: MIDDLE }),
    median(first.hit, x, -1, width),
    median(first.miss, x, 1, width),
  );
}

function bars(side, kind, sign, { bounds, from, to, x, most }) {
  return side.bins.slice(from, to + 1).map((count, offset) => {
    if (!count) return null;
    const index = from + offset;
    const left = x(bounds[index - 1]);
    const right = x(bounds[Math.min(index, bounds.length - 1)]);
    const height = Math.max(2, (count / most) * HALF);
    return s("rect", { class: kind, x: left + 0.75, width: Math.max(1, right - left - 1.5), y: sign < 0 ? MIDDLE - height : MIDDLE, height, rx: 1.5 });
  });
}

function median(side, x, sign, width) {
  if (side.p50 === null) return null;
  const at = Math.min(width - RIGHT, Math.max(LEFT, x(side.p50)));
  const end = MIDDLE + sign * (HALF + 4);
  return [
    s("line", { class: "cross", x1: at, x2: at, y1: MIDDLE, y2: end }),
    s(
      "text",
      { class: "strong", x: at, y: sign < 0 ? end - 4 : end + 11, "text-anchor": anchor(at, width, 45) },
      `p50 ${seconds(side.p50)}`,
    ),
  ];
}

function anchor(at, width, room = 22) {
  if (at < room) return "start";
  return at > width - room ? "end" : "middle";
}

function decades(low, high) {
  return [0.001, 0.01, 0.1, 1, 10, 100].filter((value) => value >= low && value <= high);
}

export function firstTable(first) {
  const rows = [
    ["hit", first.hit],
    ["miss", first.miss],
  ];
  return h(
    "table",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, t("first.kind")),
        h("th", { scope: "col", class: "num" }, t("column.requests")),
        ["p50", "p90", "p99"].map((name) => h("th", { scope: "col", class: "num" }, name)),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map(([name, side]) =>
        h(
          "tr",
          null,
          h("td", null, h("span", { class: name === "hit" ? "good-ink" : "bad-ink" }, t(`first.${name}`))),
          h("td", { class: "num" }, whole(side.count)),
          ["p50", "p90", "p99"].map((part) => h("td", { class: "num" }, seconds(side[part]))),
        ),
      ),
    ),
  );
}
