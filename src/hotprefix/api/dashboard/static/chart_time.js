// Prompt tokens over time: above the share that came from the cache, below what became of all of them.

import { h, s } from "./dom.js";
import { compact, fullTime, moment, percent, t, tick, whole } from "./words.js";

const RATE = { top: 8, height: 74 };
const BARS = { top: 104, height: 92 };
const HEIGHT = 222;
const LEFT = 44;
const RIGHT = 10;
const TICKS = [5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000];
const CLASSES = ["read", "written", "computed"];

/** All buckets of a series, those without requests too. */
export function filled(series) {
  const known = new Map(series.buckets.map((bucket) => [bucket[0], bucket]));
  const count = Math.max(1, Math.ceil((series.end - series.start) / series.step));
  return Array.from({ length: Math.min(count, 1000) }, (_, index) => {
    const [, requests = 0, prompt = 0, read = 0, written = 0, lost = 0] = known.get(index) ?? [];
    const at = series.start + index * series.step;
    return { at, requests, prompt, read, written, lost, computed: prompt - read - written };
  });
}

/** One bucket in words. */
export function told(bucket, step, now) {
  const when = `${moment(bucket.at, now)} – ${moment(bucket.at + step, now)}`;
  if (!bucket.requests) return `${when} · ${t("time.none")}`;
  const share = bucket.prompt ? percent(bucket.read / bucket.prompt) : "–";
  return `${when} · ${t("requests.n", { count: bucket.requests })} · ${t("time.read", {
    read: whole(bucket.read),
    prompt: whole(bucket.prompt),
    share,
  })}`;
}

export function timeChart(series, width, hovered) {
  const buckets = filled(series);
  const inner = Math.max(120, width - LEFT - RIGHT);
  const slot = inner / buckets.length;
  const x = (index) => LEFT + index * slot;
  const most = niceMost(Math.max(...buckets.map((bucket) => bucket.prompt), 1));
  const pointed = hovered === null ? null : buckets[Math.min(hovered, buckets.length - 1)];
  return s(
    "svg",
    { class: "chart", viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, "aria-hidden": "true" },
    rateAxis(width),
    barAxis(width, most),
    buckets.map((bucket, index) => column(bucket, x(index), slot, most)),
    rateLine(buckets, x, slot),
    timeAxis(buckets, series, x, slot),
    pointed && cross(x(buckets.indexOf(pointed)) + slot / 2),
    s("rect", {
      class: "f-catch",
      x: LEFT,
      y: 0,
      width: inner,
      height: BARS.top + BARS.height,
      "data-hover": "time",
      "data-left": LEFT,
      "data-slot": slot,
      "data-count": buckets.length,
    }),
  );
}

function rateY(rate) {
  return RATE.top + RATE.height * (1 - rate);
}

function rateAxis(width) {
  return [0, 0.5, 1].map((rate) => [
    s("line", { class: rate ? "rule" : "axis", x1: LEFT, x2: width - RIGHT, y1: rateY(rate), y2: rateY(rate) }),
    s("text", { x: LEFT - 7, y: rateY(rate) + 4, "text-anchor": "end" }, percent(rate, 0)),
  ]);
}

function barAxis(width, most) {
  return [0, 0.5, 1].map((part) => {
    const y = BARS.top + BARS.height * (1 - part);
    return [
      s("line", { class: part ? "rule" : "axis", x1: LEFT, x2: width - RIGHT, y1: y, y2: y }),
      s("text", { x: LEFT - 7, y: y + 4, "text-anchor": "end" }, compact(most * part)),
    ];
  });
}

function column(bucket, left, slot, most) {
  let y = BARS.top + BARS.height;
  const gap = slot > 5 ? 1.5 : slot > 3 ? 0.75 : 0;
  return CLASSES.filter((name) => bucket[name] > 0).map((name) => {
    const height = Math.max(0.75, (bucket[name] / most) * BARS.height);
    y -= height;
    return s("rect", { class: `f-${name}`, x: left + gap / 2, y, width: Math.max(0.6, slot - gap), height });
  });
}

/** Broken where nothing was asked; a lone bucket is a dot. */
function rateLine(buckets, x, slot) {
  const runs = [];
  let run = [];
  buckets.forEach((bucket, index) => {
    if (bucket.prompt) {
      run.push([x(index) + slot / 2, rateY(bucket.read / bucket.prompt)]);
    } else if (run.length) {
      runs.push(run);
      run = [];
    }
  });
  if (run.length) runs.push(run);
  return runs.map((points) => [
    points.length > 1 && s("polyline", { class: "s-rate", points: points.map((point) => point.join(",")).join(" ") }),
    (points.length === 1 || slot > 9) && points.map(([cx, cy]) => s("circle", { class: "f-rate", cx, cy, r: 2.6 })),
  ]);
}

/** Marks at round times of day. */
function timeAxis(buckets, series, x, slot) {
  const every = TICKS.find((seconds) => (seconds / series.step) * slot >= 68) ?? TICKS.at(-1);
  const offset = new Date(series.start * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((series.start - offset) / every) * every + offset;
  const marks = [];
  for (let at = first; at < series.end; at += every) {
    const left = x((at - series.start) / series.step);
    if (left < LEFT + 12 || left > x(buckets.length) - 12) continue;
    marks.push(
      s("line", { class: "axis", x1: left, x2: left, y1: BARS.top + BARS.height, y2: BARS.top + BARS.height + 4 }),
      s("text", { x: left, y: HEIGHT - 6, "text-anchor": "middle" }, tick(at, every)),
    );
  }
  return marks;
}

function cross(at) {
  return s("line", { class: "cross", x1: at, x2: at, y1: RATE.top, y2: BARS.top + BARS.height });
}

function niceMost(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 5, 10].map((step) => step * power).find((step) => step >= value);
}

/** The same in figures, for those who read them. */
export function timeTable(series) {
  const rows = filled(series).filter((bucket) => bucket.requests);
  return h(
    "table",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, t("column.time")),
        ["requests", "prompt", "read", "written", "computed", "rate"].map((name) =>
          h("th", { scope: "col", class: "num" }, t(`column.${name}`)),
        ),
      ),
    ),
    h(
      "tbody",
      null,
      rows.map((bucket) =>
        h(
          "tr",
          { "data-key": bucket.at },
          h("td", { class: "nowrap" }, fullTime(bucket.at)),
          [bucket.requests, bucket.prompt, bucket.read, bucket.written, bucket.computed].map((value) =>
            h("td", { class: "num" }, whole(value)),
          ),
          h("td", { class: "num" }, bucket.prompt ? percent(bucket.read / bucket.prompt) : "–"),
        ),
      ),
    ),
  );
}
