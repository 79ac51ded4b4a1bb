// Times in the visitor's zone, and live parts that refresh by themselves. Every page works without this file.
"use strict";

const REFRESH_MS = 1000 * (document.querySelector("main").dataset.refreshSeconds ?? 5);

// Where nobody has touched the page for a while, it refreshes less often.
const IDLE_AFTER_MS = 600_000;
const IDLE_REFRESH_MS = 60_000;

const ANSWER_MAX_MS = 30_000;

const [DAY, MINUTE, SECOND] = [
  { year: "numeric", month: "2-digit", day: "2-digit" },
  { hour: "2-digit", minute: "2-digit" },
  { second: "2-digit" },
];

const [moment, time, clock] = [
  { ...DAY, ...MINUTE, ...SECOND },
  { ...MINUTE, ...SECOND },
  MINUTE,
].map((shown) => new Intl.DateTimeFormat("sv-SE", shown));

const zone = clock.resolvedOptions().timeZone;

function showLocalTimes(root) {
  for (const it of root.querySelectorAll("time[datetime]")) {
    const at = new Date(it.dateTime);
    if (!Number.isNaN(at.getTime())) it.textContent = moment.format(at);
  }
  // What follows the text is its title.
  for (const it of root.querySelectorAll("[data-time]")) {
    it.firstChild.data = clock.format(new Date(it.dataset.time));
  }
  for (const it of root.querySelectorAll("[data-zone]")) it.textContent = zone;
}

function showZone() {
  const shown = document.getElementById("zone");
  if (!shown || zone === "UTC") return;
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset" }).formatToParts(new Date());
  const offset = parts.find((part) => part.type === "timeZoneName").value.replace("GMT", "UTC");
  shown.textContent = `Times are in ${zone} (${offset}). Point at one to see UTC.`;
}

// The notice of an action is of a moment: an address that is kept or sent to others does not have it.
function forgetNotice() {
  const url = new URL(location.href);
  if (!url.searchParams.has("done")) return;
  for (const name of ["done", "at"]) url.searchParams.delete(name);
  history.replaceState(history.state, "", url);
}

// A part in which the visitor uses a control, has chosen a text or has opened something is left as it is. A
// region that scrolls has the focus after any click in it, and is no control.
function isInUse(part) {
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  const active = document.activeElement;
  const isUsed = part.contains(active) && !active.matches("[role=region]");
  return isSelected || isUsed || part.querySelector("details[open]") !== null;
}

// Changes `old` into `newer` in its place, so that what stays the same keeps its focus and its scroll.
function patch(old, newer) {
  if (old.isEqualNode(newer)) return;
  if (!isAlike(old, newer)) return void old.replaceWith(newer);
  patchAttributes(old, newer);
  const [children, newers] = [[...old.childNodes], [...newer.childNodes]];
  newers.forEach((node, at) => (children[at] ? patch(children[at], node) : old.append(node)));
  for (const node of children.slice(newers.length)) node.remove();
}

function isAlike(old, newer) {
  const isSame = (name) => old.getAttribute(name) === newer.getAttribute(name);
  return old instanceof Element && old.nodeName === newer.nodeName && isSame("class") && isSame("role");
}

function patchAttributes(old, newer) {
  for (const { name } of [...old.attributes]) if (!newer.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of newer.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
}

const liveParts = () => [...document.querySelectorAll("[data-live][id]")];

let refreshedAt = new Date();

// Only a failure is announced, and only once.
function showAge(fresh, stale) {
  for (const [id, text] of Object.entries({ refreshed: fresh, "not-refreshed": stale })) {
    const shown = document.getElementById(id);
    if (shown && shown.textContent !== text) shown.textContent = text;
  }
}

function showFresh(isPaused) {
  refreshedAt = isPaused ? refreshedAt : new Date();
  const word = isPaused ? "Paused while in use since" : "Refreshed";
  showAge(`${word} ${time.format(refreshedAt)}`, "");
}

function showStale(why) {
  showAge("", `Not refreshed since ${time.format(refreshedAt)}: ${why}`);
}

async function refresh() {
  if (document.hidden) return;
  const signal = AbortSignal.timeout(ANSWER_MAX_MS);
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, signal });
  // The session has ended: the sign-in page says so.
  if (answer.redirected) return void location.reload();
  if (!answer.ok) return showStale(`the server answers ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  showLocalTimes(page);
  const parts = liveParts();
  const used = parts.filter(isInUse);
  for (const part of parts) {
    const newer = page.getElementById(part.id);
    if (newer && !used.includes(part)) patch(part, newer);
  }
  showFresh(used.length > 0);
}

let inputAt = Date.now();
let timer;

const isIdle = () => Date.now() - inputAt >= IDLE_AFTER_MS;

function schedule() {
  clearTimeout(timer);
  if (liveParts().length === 0) return;
  timer = setTimeout(keepFresh, isIdle() ? Math.max(REFRESH_MS, IDLE_REFRESH_MS) : REFRESH_MS);
}

function keepFresh() {
  refresh()
    .catch(() => showStale("the server does not answer"))
    .then(schedule);
}

function noteInput() {
  const wasIdle = isIdle();
  inputAt = Date.now();
  if (wasIdle) schedule();
}

showLocalTimes(document);
showZone();
forgetNotice();
if (liveParts().length > 0) {
  document.getElementById("not-refreshed")?.setAttribute("role", "status");
  showFresh(false);
  schedule();
  for (const input of ["pointerdown", "keydown"]) addEventListener(input, noteInput, { passive: true });
  document.addEventListener("visibilitychange", () => document.hidden || noteInput());
}
