// Pieces that several views show.

import { h } from "./dom.js";
import { maybe, t, whole } from "./words.js";

export const CLASSES = ["read", "written", "computed", "free"];

/** What a reason means, in words. */
export function meaning(reason) {
  return maybe(`reason.${reason}`) ?? reason;
}

/** What refines a request's reason: words for those we know, itself otherwise. */
export function detailText({ reason, detail }) {
  if (reason === "BELOW_MIN" && /^\d+$/.test(detail)) return t("detail.missing", { count: Number(detail) });
  return maybe(`detail.${detail}`) ?? detail;
}

export function reasonChip(request) {
  const kind = request.reason === "NONE" ? "good" : request.lost_tokens > 0 && request.avoidable ? "lost" : "";
  return h("span", { class: `chip ${kind}`, title: meaning(request.reason) }, request.reason);
}

/** The classes of a prompt's tokens as one bar. */
export function classBar(request, kind = "mini") {
  const total = request.prompt || 1;
  const title = CLASSES.filter((name) => request[name])
    .map((name) => `${t(`class.${name}`)} ${whole(request[name])}`)
    .join(" · ");
  return h(
    "div",
    { class: `track ${kind}`, role: "img", "aria-label": title, title },
    CLASSES.filter((name) => request[name]).map((name) =>
      h("span", { class: `c-${name}`, style: { width: `${(100 * request[name]) / total}%` } }),
    ),
  );
}

export function classKey(values) {
  return h(
    "ul",
    { class: "key" },
    Object.entries(values).map(([name, value]) =>
      h("li", null, h("i", { class: `c-${name}` }), t(`class.${name}`), " ", h("b", null, value)),
    ),
  );
}

/** A panel with a heading; `aside` stands at its right. */
export function panel(kind, title, aside, ...children) {
  const id = `h-${title.replace(/\W+/g, "-")}`;
  return h(
    "section",
    { class: `panel ${kind}`, "aria-labelledby": id },
    h("header", null, h("h2", { id }, title), aside),
    children,
  );
}

/** What to send in order to see something here. */
export function lesson(title, text, command) {
  return h(
    "div",
    { class: "empty" },
    h("h3", null, title),
    h("p", null, text),
    command && [
      h("pre", { class: "try" }, h("code", null, command)),
      h("button", { type: "button", class: "btn", "data-act": "copy", "data-text": command }, t("copy")),
    ],
  );
}

export function tenantName(tenant) {
  if (tenant === null) return t("tenant.unknown");
  if (tenant === "" || tenant === "open:") return t("tenant.nobody");
  return tenant;
}

export function sceneName(scene) {
  return scene === "" ? t("scene.none") : scene;
}

/** Opens and stays open by itself; see `dom.js`. */
export function figures(table) {
  return h("details", { class: "table" }, h("summary", null, t("figures")), h("div", { class: "scroll" }, table));
}

export function columns(...names) {
  return h(
    "thead",
    null,
    h(
      "tr",
      null,
      names.map(([name, kind = ""]) => h("th", { scope: "col", class: kind }, name && t(`column.${name}`))),
    ),
  );
}
