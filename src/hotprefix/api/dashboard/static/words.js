// The page's language: texts from en.json and zh.json, numbers and times as each writes them.

import { stored } from "./state.js";

const LANGUAGES = ["en", "zh"];
let texts = {};
let rules = new Intl.PluralRules("en");
let locale = "en";

/** The language that was chosen, or the browser's. */
export function chosenLanguage() {
  const chosen = stored("language");
  if (LANGUAGES.includes(chosen)) return chosen;
  return (navigator.language || "en").toLowerCase().startsWith("zh") ? "zh" : "en";
}

export async function speak(language) {
  const response = await fetch(new URL(`${language}.json`, import.meta.url));
  texts = await response.json();
  locale = language === "zh" ? "zh-CN" : "en";
  rules = new Intl.PluralRules(locale);
  document.documentElement.lang = locale;
}

/** A text with its values in place; `count` chooses between `key` and `key_one`. */
export function t(key, values = {}) {
  const single = "count" in values && rules.select(values.count) === "one" ? texts[`${key}_one`] : undefined;
  const text = single ?? texts[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => (name === "count" ? whole(values[name]) : (values[name] ?? "")));
}

/** The text of a key, or nothing. */
export function maybe(key) {
  return texts[key];
}

export function isChinese() {
  return locale !== "en";
}

export function whole(value) {
  return new Intl.NumberFormat(locale, { maximumFractionDigits: 0 }).format(value);
}

/** As it is up to 99,999, then shorter. */
export function short(value) {
  return Math.abs(value) < 100_000 ? whole(value) : compact(value);
}

export function compact(value) {
  return new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 }).format(value);
}

export function percent(part, digits = 1) {
  return new Intl.NumberFormat(locale, { style: "percent", minimumFractionDigits: digits, maximumFractionDigits: digits }).format(part);
}

export function money(text, currency) {
  const value = Number(text);
  const size = Math.abs(value);
  const digits = size === 0 || size >= 1 ? { maximumFractionDigits: 2 } : { maximumSignificantDigits: 3 };
  return new Intl.NumberFormat(locale, {
    style: "currency",
    currency,
    currencyDisplay: "narrowSymbol",
    minimumFractionDigits: 0,
    ...digits,
  }).format(value);
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0995) return `${number(value * 1000, 1)} ms`;
  if (value < 0.9995) return `${number(value * 1000, 0)} ms`;
  if (value < 99.5) return `${number(value, 2)} s`;
  return lifetime(value);
}

/** Seconds as one or two larger units. */
export function lifetime(value) {
  const steps = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const index = Math.max(0, steps.findIndex(([, size]) => value >= size));
  const [unit, size] = value < 1 ? steps[3] : steps[index];
  const first = Math.floor(value / size);
  const next = steps[index + 1];
  const rest = next && value >= 1 ? Math.floor((value - first * size) / next[1]) : 0;
  const head = t(`unit.${unit}`, { n: first });
  return rest ? `${head} ${t(`unit.${next[0]}`, { n: rest })}` : head;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let index = 0;
  let size = value ?? 0;
  while (size >= 1024 && index < units.length - 1) {
    size /= 1024;
    index += 1;
  }
  return `${number(size, index && size < 100 ? 1 : 0)} ${units[index]}`;
}

/** A moment: the time today, date and time otherwise. */
export function moment(at, now) {
  const date = new Date(at * 1000);
  const isToday = date.toDateString() === new Date(now * 1000).toDateString();
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  const day = isToday ? {} : { month: "short", day: "numeric" };
  return new Intl.DateTimeFormat(locale, { ...day, ...time }).format(date);
}

/** A mark on the axis of time, as fine as `step` seconds ask for. */
export function tick(at, step) {
  const form =
    step >= 86400
      ? { month: "short", day: "numeric" }
      : step >= 60
        ? { hour: "2-digit", minute: "2-digit", hour12: false }
        : { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
  return new Intl.DateTimeFormat(locale, form).format(new Date(at * 1000));
}

export function fullTime(at) {
  return new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium", hour12: false }).format(new Date(at * 1000));
}

function number(value, digits) {
  return new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }).format(value);
}
