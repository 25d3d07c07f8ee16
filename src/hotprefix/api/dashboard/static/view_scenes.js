// Uses of the server by name, and the prompts that clients have named.

import { h } from "./dom.js";
import { columns, lesson, panel, sceneName } from "./parts.js";
import { sample } from "./samples.js";
import { state } from "./state.js";
import { moment, money, percent, seconds, short, t, whole } from "./words.js";

export function scenesView() {
  const data = state.scenes;
  if (!data) return [h("p", { class: "note" }, t("loading"))];
  const isNamed = data.scenes.some((scene) => scene.scene);
  return [
    data.scenes.length > 0 && table("scenes", data.scenes),
    data.prompts.length > 0 && h("div", { class: "grid below" }, table("prompts", data.prompts)),
    data.left_out > 0 && h("p", { class: "note below" }, t("scenes.left-out", { count: data.left_out })),
    !isNamed && h("section", { class: "panel below" }, lesson(t("empty.scenes.title"), t("empty.scenes.text"), sample("scene"))),
  ];
}

function table(kind, groups) {
  const isScene = kind === "scenes";
  const title = t(isScene ? "scenes.title" : "prompts.title");
  const last = isScene ? [["worst", "wide"], ["seen", "num wide"]] : [];
  return panel(
    "w12",
    title,
    null,
    h(
      "div",
      { class: "scroll" },
      h(
        "table",
        null,
        h("caption", { class: "unseen" }, title),
        columns([isScene ? "scene" : "named-prompt"], ["requests", "num"], ["prompt", "num"], ["rate", "num"], ["", ""], ["lost", "num"], ["ttft-mean", "num wide"], ["cost", "num wide"], ...last),
        h("tbody", null, groups.toSorted((a, b) => b.prompt - a.prompt).map((group) => row(group, isScene))),
      ),
    ),
  );
}

function row(group, isScene) {
  const name = isScene ? group.scene : group.prompt_name;
  return h(
    "tr",
    { "data-key": `${group.currency}-${name}` },
    h("td", null, isScene ? h("button", { type: "button", class: "link", "data-act": "scene", "data-scene": name }, sceneName(name)) : name),
    h("td", { class: "num" }, whole(group.requests)),
    h("td", { class: "num" }, short(group.prompt)),
    h("td", { class: `num ${group.read ? "good-ink" : "dim"}` }, percent(group.hit_rate)),
    h("td", null, h("div", { class: "track mini" }, h("span", { class: "c-read", style: { width: `${100 * group.hit_rate}%` } }))),
    h("td", { class: `num ${group.lost_tokens ? "bad-ink" : "dim"}` }, group.lost_tokens ? whole(group.lost_tokens) : "–"),
    h("td", { class: "num wide" }, seconds(group.first_token_seconds)),
    h("td", { class: "num wide" }, money(group.money, group.currency)),
    isScene && h("td", { class: "wide" }, group.worst_reason && h("span", { class: "chip" }, group.worst_reason)),
    isScene && h("td", { class: "num wide dim" }, group.last_seen ? moment(group.last_seen, state.visitor?.now ?? group.last_seen) : "–"),
  );
}
