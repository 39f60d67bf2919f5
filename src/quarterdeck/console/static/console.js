// Makes pages live. Everything works without it: the server renders each page whole.
"use strict";
(() => {
  const UNITS = [[172800, 86400, "d"], [3600, 3600, "h"], [60, 60, "m"], [0, 1, "s"]];
  document.documentElement.classList.add("js");

  // Ages grow in the browser; the server sends nothing for that.
  const showAges = (root) => {
    for (const time of root.querySelectorAll("time[data-ago]")) {
      const past = Math.max(0, Math.round((Date.now() + skew - Date.parse(time.dateTime)) / 1000));
      const [, size, unit] = UNITS.find(([from]) => past >= from);
      const text = Math.floor(past / size) + unit;
      if (time.textContent !== text) time.textContent = text;
    }
    // Waits: how long it is until then, and how much of the wait has passed.
    for (const time of root.querySelectorAll("time[data-left]")) {
      const left = Math.round((Date.parse(time.dateTime) - Date.now() - skew) / 1000);
      const text = left >= 1 ? "in " + duration(left) : "now";
      if (time.textContent !== text) time.textContent = text;
    }
    for (const bar of root.querySelectorAll("progress[data-from]")) {
      const from = Date.parse(bar.dataset.from), until = Date.parse(bar.dataset.until);
      bar.value = Math.min(1000, Math.max(0, 1000 * (Date.now() + skew - from) / (until - from)));
    }
  };
  const duration = (seconds) => {
    const parts = [];
    for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
      const count = Math.floor(seconds / size);
      seconds -= count * size;
      if (count || (unit === "s" && !parts.length)) parts.push(count + unit);
    }
    return parts.slice(0, 2).join("");
  };
  // The server's clock decides: the age that it rendered tells how far ours is off.
  let skew = 0;
  const first = document.querySelector("time[data-ago]");
  if (first) {
    const [, count, unit] = /^(\d+)([smhd])$/.exec(first.textContent) || [];
    const size = (UNITS.find((one) => one[2] === unit) || [0, 0])[1] * 1000;
    const ours = Date.now() - Date.parse(first.dateTime), low = count * size;
    if (size && (ours < low - 5000 || ours > low + size + 5000)) skew = low + size / 2 - ours;
  }
  // A page with a wait counts its seconds.
  setInterval(() => { if (document.querySelector("time[data-left]")) showAges(document); }, 1000);
  setInterval(() => showAges(document), 5000);

  // Copying a command.
  const prepareCopy = (root) => {
    if (!navigator.clipboard) return;
    for (const button of root.querySelectorAll("button.copy[hidden]")) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    }
  };
  prepareCopy(document);

  // The table of operators: filter and order.
  const rows = document.getElementById("rows");
  const search = document.getElementById("search"), sort = document.getElementById("sort");
  let group = new URLSearchParams(location.search).get("state") || "";
  const key = {
    worst: (row) => [Number(row.dataset.rank), row.dataset.name],
    name: (row) => [row.dataset.name],
    since: (row) => [-Number(row.dataset.since), row.dataset.name],
  };
  const before = (a, b) => {
    const of = key[sort.value] || key.worst, left = of(a), right = of(b);
    for (let at = 0; at < left.length; at += 1) {
      if (left[at] < right[at]) return true;
      if (left[at] > right[at]) return false;
    }
    return false;
  };
  const wanted = (row) => {
    const text = search.value.trim().toLowerCase();
    const message = row.querySelector(".msg").textContent.toLowerCase();
    return (!group || row.dataset.group === group) && (row.dataset.name.includes(text) || message.includes(text));
  };
  const filter = () => {
    let any = false;
    for (const row of rows.children) { row.hidden = !wanted(row); any = any || !row.hidden; }
    document.getElementById("empty").hidden = any;
  };
  const place = (row) => {
    const next = [...rows.children].find((one) => one !== row && before(row, one));
    if (next ? row.nextElementSibling !== next : row.nextElementSibling) rows.insertBefore(row, next || null);
  };
  if (rows) {
    search.form.addEventListener("submit", (event) => event.preventDefault());
    search.addEventListener("input", filter);
    sort.addEventListener("change", () => {
      for (const row of [...rows.children].sort((a, b) => (before(a, b) ? -1 : 1))) rows.append(row);
    });
    for (const link of document.querySelectorAll("[data-filter]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        group = group === link.dataset.filter ? "" : link.dataset.filter;
        for (const one of document.querySelectorAll("[data-filter]")) {
          if (one.dataset.filter === group) one.setAttribute("aria-current", "true"); else one.removeAttribute("aria-current");
        }
        history.replaceState(null, "", group ? `/?state=${group}` : "/");
        filter();
      });
    }
  }
  const showCounts = () => {
    for (const one of document.querySelectorAll("#summary [data-group]")) {
      const link = document.querySelector(`[data-filter="${one.dataset.group}"]`);
      if (link) { link.querySelector("b").textContent = one.dataset.count; link.classList.toggle("none", one.dataset.count === "0"); }
    }
  };

  // One element for each fragment that changed. The server has escaped everything in it.
  const apply = ({ id, html }) => {
    const old = document.getElementById(id);
    if (html === null) { if (old) old.remove(); return; }
    const holder = document.createElement("template");
    holder.innerHTML = html;
    const made = holder.content.firstElementChild;
    const open = new Set([...(old ? old.querySelectorAll("details[open][id]") : [])].map((one) => one.id));
    const focused = old && old.contains(document.activeElement) ? document.activeElement : null;
    const path = focused && [...old.querySelectorAll("a, button, [tabindex]")].indexOf(focused);
    showAges(made);
    if (old) old.replaceWith(made);
    else if (rows && made.matches("tr")) rows.append(made);
    else return;
    for (const one of made.querySelectorAll("details[id]")) if (open.has(one.id)) one.open = true;
    if (focused) { const again = made.querySelectorAll("a, button, [tabindex]")[path]; if (again) again.focus({ preventScroll: true }); }
    if (rows && made.parentNode === rows) { made.classList.add("changed"); place(made); made.hidden = !wanted(made); }
    prepareCopy(made);
  };
  const status = document.getElementById("live");
  const show = (text, on) => { if (status) { status.hidden = false; status.textContent = text; status.classList.toggle("on", on); } };
  let source = null;
  const again = async () => {
    if (document.hidden) return;
    try {
      const answer = await fetch(location.pathname, { method: "HEAD" });
      if (new URL(answer.url).pathname === "/login") { location.assign("/login?why=ended"); return; }
    } catch { /* not reachable: the next attempt says so */ }
    connect();
  };
  const connect = () => {
    if (!document.body.dataset.live || source) return;
    source = new EventSource(document.body.dataset.live);
    source.addEventListener("open", () => show("live", true));
    source.addEventListener("error", () => {
      show("connecting", false);
      // A browser gives up after an answer that is an error: rights were revoked, the server is gone.
      if (source && source.readyState === EventSource.CLOSED) { source = null; setTimeout(again, 5000); }
    });
    const changed = (event) => {
      const all = JSON.parse(event.data);
      if (event.type === "whole" && rows) {
        // What went while nobody told us is not in it.
        const there = new Set(all.map((one) => one.id));
        for (const row of [...rows.children]) if (!there.has(row.id)) row.remove();
      }
      for (const update of all) apply(update);
      showCounts();
      const at = new URL(document.body.dataset.live, location.href);
      at.searchParams.set("seen", event.lastEventId);
      document.body.dataset.live = at.pathname + at.search;
      document.body.dataset.updates = String(Number(document.body.dataset.updates || 0) + 1);
    };
    source.addEventListener("whole", changed);
    source.addEventListener("update", changed);
    source.addEventListener("ended", () => { source.close(); location.assign("/login?why=ended"); });
  };
  const disconnect = () => { if (source) { source.close(); source = null; } };
  // A browser has few connections for each server: a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else connect(); });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  // Logging out ends the session, and with it the events: the answer to the form says so.
  for (const form of document.querySelectorAll('form[action="/logout"]')) form.addEventListener("submit", disconnect);
  connect();

  // The log: lines are appended, and the view follows unless somebody scrolled up.
  const log = document.querySelector("[data-log]");
  if (log) {
    const lines = new EventSource(log.dataset.log);
    lines.addEventListener("lines", (event) => {
      const follows = log.scrollTop + log.clientHeight >= log.scrollHeight - 20;
      const holder = document.createElement("template");
      holder.innerHTML = JSON.parse(event.data);
      log.append(holder.content);
      while (log.children.length > 500) log.firstElementChild.remove();
      if (follows) log.scrollTop = log.scrollHeight;
    });
    lines.addEventListener("restart", () => log.replaceChildren());
    addEventListener("pagehide", () => lines.close());
    log.scrollTop = log.scrollHeight;
  }

  // "/" goes to the search field, as in many consoles.
  addEventListener("keydown", (event) => {
    if (event.key === "/" && search && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) { event.preventDefault(); search.focus(); }
  });
})();
