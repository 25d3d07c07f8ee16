// Requests, the newest first.

import { h } from "./dom.js";
import { classBar, columns, detailText, lesson, panel, reasonChip, sceneName, tenantName } from "./parts.js";
import { sample } from "./samples.js";
import { isFiltered, state } from "./state.js";
import { fullTime, moment, percent, seconds, t, whole } from "./words.js";

export function requestsView() {
  const { requests } = state;
  if (!requests) return [h("p", { class: "note" }, t("loading"))];
  if (!requests.length) {
    const text = isFiltered() ? t("empty.filter.text") : t("empty.requests.text");
    const title = isFiltered() ? t("empty.filter.title") : t("empty.requests.title");
    return [h("section", { class: "panel" }, lesson(title, text, isFiltered() ? null : sample("twice")))];
  }
  return [
    panel(
      "",
      t("requests.title"),
      h("p", { class: "note end" }, t("requests.hint")),
      requestTable(requests),
      state.hasMore && h("button", { type: "button", class: "btn more", "data-act": "more" }, t("requests.more")),
    ),
  ];
}

export function requestTable(requests) {
  const hasTenants = state.visitor.tenant === null && (state.summary?.choices.tenant.length ?? 0) > 1;
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      null,
      h("caption", { class: "unseen" }, t("requests.title")),
      columns(
        ["time"],
        ["scene", "wide"],
        ...(hasTenants ? [["tenant", "wide"]] : []),
        ["prompt", "num wide"],
        ["rate", "num"],
        ["classes", "wide"],
        ["reason"],
        ["detail", "wide"],
        ["lost", "num wide"],
        ["ttft", "num"],
        ["total", "num wide"],
      ),
      h("tbody", null, requests.map((request) => row(request, hasTenants))),
    ),
  );
}

function row(request, hasTenants) {
  const open = { "data-act": "open", "data-id": request.request_id };
  const isOff = request.status >= 400 || request.finish === "aborted";
  const now = state.summary?.now ?? request.at;
  return h(
    "tr",
    { class: `pick ${state.fresh.has(request.request_id) ? "fresh" : ""}`, "data-key": request.request_id, ...open },
    h(
      "td",
      { class: "nowrap" },
      h("button", { type: "button", class: "link", "data-row": request.request_id, title: fullTime(request.at), ...open }, moment(request.at, now)),
      isOff && h("span", { class: "chip lost" }, request.finish === "aborted" ? t("finish.aborted") : request.status),
    ),
    h("td", { class: `wide ${request.scene ? "" : "dim"}` }, sceneName(request.scene), request.prompt_name && h("span", { class: "dim" }, ` ${promptName(request)}`)),
    hasTenants && h("td", { class: "wide dim" }, tenantName(request.tenant)),
    h("td", { class: "num wide" }, whole(request.prompt)),
    h("td", { class: `num ${request.read ? "good-ink" : "dim"}` }, request.prompt ? percent(request.read / request.prompt) : "–"),
    h("td", { class: "wide" }, classBar(request)),
    h("td", null, reasonChip(request)),
    h("td", { class: "wide dim" }, detailText(request)),
    h("td", { class: `num wide ${request.lost_tokens ? "bad-ink" : "dim"}` }, request.lost_tokens ? whole(request.lost_tokens) : "–"),
    h("td", { class: "num" }, seconds(request.first_token)),
    h("td", { class: "num wide dim" }, seconds(request.total)),
  );
}

export function promptName(request) {
  return request.prompt_version ? `${request.prompt_name}@${request.prompt_version}` : request.prompt_name;
}
