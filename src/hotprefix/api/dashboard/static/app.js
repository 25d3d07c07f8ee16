// The page: asks for what the current view shows, and draws it anew when something has changed.

import { say, wire } from "./actions.js";
import { Refused, ask, key, listen } from "./api.js";
import { show } from "./dom.js";
import { address, isChosen, question, readAddress, state } from "./state.js";
import { cachesView } from "./view_caches.js";
import { detailView } from "./view_detail.js";
import { frame, helpView } from "./view_frame.js";
import { overview } from "./view_overview.js";
import { prefixesView } from "./view_prefixes.js";
import { requestsView } from "./view_requests.js";
import { scenesView } from "./view_scenes.js";
import { chosenLanguage, speak, t } from "./words.js";

const IDLE = 15_000;
const ENGINE = 2_500;
const SOON = 700;
const PAGE = 50;
const MOST = 500;
const VIEWS = { requests: requestsView, prefixes: prefixesView, scenes: scenesView, caches: cachesView };

const page = {
  hovered: null,
  _loading: null,
  _timer: 0,
  _due: Infinity,
  _drawing: 0,
  _took: 0,
  _stream: null,

  async start() {
    await speak(chosenLanguage());
    readAddress();
    wire(this);
    window.addEventListener("popstate", () => this.moved());
    window.addEventListener("resize", () => this.draw());
    document.addEventListener("visibilitychange", () => !document.hidden && this.reload());
    setInterval(() => this.beat(), ENGINE);
    await this.restart();
  },

  /** Ask who we are, then show what we may see. */
  async restart() {
    this._stream?.abort();
    Object.assign(state, { summary: null, requests: null, prefixes: null, scenes: null, caches: null, engine: null, detail: null, problem: "" });
    try {
      const visitor = await ask("hello");
      state.loginProblem = visitor.state === "key" && key.get() ? visitor.message : "";
      if (visitor.state === "key") key.clear();
      state.visitor = visitor;
      state.skew = (visitor.now ?? Date.now() / 1000) - Date.now() / 1000;
    } catch (error) {
      this.failed(error);
    }
    this.draw();
    if (state.visitor?.state !== "open") return;
    this.connect();
    await this.reload();
  },

  /** Look at something else. At once: the next key may come before an event would. */
  go(changes) {
    const next = address(changes);
    if (next === location.hash) return;
    history.pushState(null, "", next);
    this.moved();
  },

  /** The address has changed. */
  moved() {
    const before = { question: JSON.stringify(question()), request: state.request, tab: state.tab };
    readAddress();
    if (JSON.stringify(question()) !== before.question) Object.assign(state, { requests: null, scenes: null });
    this.hovered = null;
    this.draw();
    if (state.tab !== before.tab) {
      window.scrollTo(0, 0);
      say(t(`tab.${state.tab}`));
    }
    if (state.request !== before.request) this.openDetail();
    this.reload();
  },

  /** Ask again for all that the view shows; only one such round at a time, the newest. */
  async reload() {
    if (state.visitor?.state !== "open") return;
    this._loading?.abort();
    const round = (this._loading = new AbortController());
    clearTimeout(this._timer);
    this._due = Infinity;
    const began = performance.now();
    try {
      await this.load(round.signal);
      state.problem = "";
      if (state.request && !state.detail) this.openDetail();
    } catch (error) {
      if (error.name === "AbortError" || round.signal.aborted) return;
      this.failed(error);
    }
    this._took = performance.now() - began;
    if (this._loading === round) this._loading = null;
    this.draw();
    this.later(IDLE);
  },

  async load(signal) {
    const { tab } = state;
    const asked = question();
    const tenant = state.filters.tenant;
    const redact = state.hidesText ? 1 : null;
    const jobs = [];
    const isPast = tab !== "prefixes" && tab !== "caches";
    if (isPast || !state.summary) jobs.push(ask("summary", asked, signal).then((found) => (state.summary = found)));
    if (tab === "overview" || tab === "requests") jobs.push(this.loadRequests(asked, signal));
    if (tab === "overview" && state.visitor.tenant === null) jobs.push(ask("engine", {}, signal).then((found) => (state.engine = found)));
    if (tab === "prefixes") jobs.push(ask("prefixes", { tenant, redact }, signal).then((found) => (state.prefixes = found)));
    if (tab === "caches") jobs.push(ask("caches", { tenant }, signal).then((found) => (state.caches = found)));
    if (tab === "scenes") jobs.push(ask("scenes", asked, signal).then((found) => (state.scenes = found)));
    await Promise.all(jobs);
  },

  async loadRequests(asked, signal) {
    const { requests } = await ask("requests", asked, signal);
    const known = new Set(requests.map((request) => request.request_id));
    const oldest = requests.at(-1)?.at ?? Infinity;
    const older = (state.requests ?? []).filter((request) => request.at <= oldest && !known.has(request.request_id));
    if (!older.length) state.hasMore = requests.length === PAGE;
    state.requests = requests.length < PAGE ? requests : [...requests, ...older];
  },

  async more() {
    const last = state.requests?.at(-1);
    if (!last) return;
    try {
      const { requests } = await ask("requests", { ...question(), before: last.at, before_id: last.request_id });
      state.hasMore = requests.length === PAGE;
      state.requests = [...state.requests, ...requests];
    } catch (error) {
      this.failed(error);
    }
    this.draw();
  },

  /** Ask again after so many milliseconds, or sooner if that was wanted already. */
  later(delay) {
    const due = performance.now() + delay;
    if (!state.isLive || due >= this._due) return;
    clearTimeout(this._timer);
    this._due = due;
    this._timer = setTimeout(() => {
      this._due = Infinity;
      if (document.hidden) this.later(IDLE);
      else this.reload();
    }, delay);
  },

  /** The server's own figures are cheap and change all the time. */
  async beat() {
    if (!state.isLive || document.hidden || state.tab !== "overview" || !state.engine || this._loading) return;
    try {
      state.engine = await ask("engine");
      this.draw();
    } catch (error) {
      this.failed(error);
    }
  },

  /** Hear of requests as they end, for as long as the page is live; come back when the line breaks. */
  async connect() {
    this._stream?.abort();
    state.link = "wait";
    if (!state.isLive || state.visitor?.state !== "open") {
      this.draw();
      return;
    }
    const stream = (this._stream = new AbortController());
    for (let pause = 1000; !stream.signal.aborted; pause = Math.min(pause * 2, 15_000)) {
      try {
        await listen((event, data) => {
          pause = 1000;
          this.heard(event, data);
        }, stream.signal);
      } catch (error) {
        if (stream.signal.aborted) return;
        if (error instanceof Refused && (error.status === 401 || error.status === 403)) return void this.restart();
      }
      state.link = "wait";
      this.draw();
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  },

  heard(event, data) {
    const wasOn = state.link === "on";
    state.link = "on";
    if (event === "request" && isChosen(data) && state.requests) {
      const others = state.requests.filter((request) => request.request_id !== data.request_id);
      state.requests = [data, ...others].slice(0, MOST);
      state.fresh.add(data.request_id);
      setTimeout(() => state.fresh.delete(data.request_id), 2200);
    }
    this.drawSoon();
    // Sums come from the server: asked for soon, and never more than a quarter of the time.
    const isPast = state.tab !== "prefixes" && state.tab !== "caches";
    if (isPast && (event !== "open" || !wasOn)) this.later(Math.max(SOON, 3 * this._took));
  },

  async openDetail() {
    const dialog = document.getElementById("detail");
    const wanted = state.request;
    Object.assign(state, { detail: null, detailProblem: "" });
    if (!wanted) {
      if (dialog.open) dialog.close();
      return;
    }
    this.drawDetail();
    if (!dialog.open) dialog.showModal();
    try {
      const found = await ask(`requests/${encodeURIComponent(wanted)}`, { redact: state.hidesText ? 1 : null });
      if (state.request === wanted) state.detail = found;
    } catch (error) {
      state.detailProblem = error.message || t("problem.unreachable");
    }
    this.drawDetail();
    dialog.scrollTop = 0;
  },

  help() {
    const dialog = document.getElementById("help");
    dialog.setAttribute("aria-labelledby", "help-title");
    show(dialog, helpView());
    dialog.showModal();
  },

  hover(index, isKey = false) {
    if (index === null && document.activeElement?.dataset.keys === "time") return;
    const next = index === null ? null : Math.max(0, index);
    if (next === this.hovered && !isKey) return;
    this.hovered = next;
    this.draw();
  },

  failed(error) {
    if (error.status === 401) return void this.restart();
    state.problem = error.message || t("problem.unreachable");
    state.link = "wait";
    this.draw();
  },

  /** For what comes often: at most a few times a second. */
  drawSoon() {
    this._drawing ||= setTimeout(() => this.draw(), SOON / 3);
  },

  draw() {
    clearTimeout(this._drawing);
    this._drawing = 0;
    const width = Math.min(document.documentElement.clientWidth, 1480) - (document.documentElement.clientWidth > 720 ? 40 : 24);
    const view = VIEWS[state.tab] ?? (() => overview(width, this.hovered));
    const isIn = state.visitor?.state === "open";
    show(document.getElementById("app"), frame(isIn ? view() : []));
    document.getElementById("skip").textContent = t("skip");
    document.title = isIn ? `${t(`tab.${state.tab}`)} · Hotprefix` : "Hotprefix";
    if (document.getElementById("detail").open) this.drawDetail();
    if (document.getElementById("help").open) show(document.getElementById("help"), helpView());
  },

  drawDetail() {
    const dialog = document.getElementById("detail");
    dialog.setAttribute("aria-labelledby", "detail-title");
    show(dialog, detailView());
  },
};

page.start();
