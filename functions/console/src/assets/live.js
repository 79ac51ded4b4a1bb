// Live parts, which refresh by themselves.

const REFRESH_MS = 1000 * (document.querySelector("main").dataset.refreshSeconds ?? 5);

// Where nobody has touched the page for a while, it refreshes less often.
const IDLE_AFTER_MS = 600_000;
const IDLE_REFRESH_MS = 60_000;

// The server answers within 25 s. What it has not answered for 10 s (LATE_MS) is said before.
const ANSWER_MAX_MS = 30_000;

// A part in which the visitor uses a control, has chosen a text, has opened something or has sent a form is
// left as it is. A region that scrolls has the focus after any click in it, and is no control. Safari gives
// a button that is clicked no focus.
function isInUse(part) {
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  const active = document.activeElement;
  const isUsed = part.contains(active) && !active.matches("[role=region]");
  return isSelected || isUsed || part.querySelector("details[open], [aria-busy], .waiting:not(.over)") !== null;
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
    if (!shown || shown.dataset.said === text) continue;
    shown.dataset.said = text;
    shown.textContent = text;
  }
}

function showFresh(isPaused) {
  refreshedAt = isPaused ? refreshedAt : new Date();
  const word = isPaused ? "Paused while in use since" : "Refreshed";
  showAge(`${word} ${formats.time.format(refreshedAt)}`, "");
}

// The age of what is shown counts on, without being announced again.
function showStale(why) {
  showAge("", `Not refreshed since ${formats.time.format(refreshedAt)}: ${why}`);
  const banner = document.getElementById("not-refreshed");
  if (!banner || banner.querySelector(".ago")) return;
  const age = Object.assign(document.createElement("span"), { className: "ago", ariaHidden: "true" });
  age.dataset.since = new Date(refreshedAt - clockDifference).toISOString();
  banner.append(". What is shown was read ", age);
  showAges(banner);
}

// What is typed stays: the way to sign in is a tab of its own.
function showSignedOut(href) {
  const banner = document.getElementById("not-refreshed");
  if (!banner || banner.querySelector("a")) return;
  showAge("", "You are signed out. What you typed stays here: ");
  const link = { href, target: "_blank", rel: "noopener", textContent: "Sign in in a new tab" };
  banner.append(Object.assign(document.createElement("a"), link));
}

let isGone = false;

function showGone() {
  isGone = true;
  showAge("", "What this page shows is not there any more. It was deleted, or has ended.");
}

function isTyped() {
  return [...document.querySelectorAll("main :is(input, select, textarea)")].some(isChanged);
}

function isChanged(field) {
  if (!(field instanceof HTMLSelectElement)) {
    return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  }
  const first = [...field.options].findIndex((option) => option.defaultSelected);
  return field.selectedIndex !== Math.max(first, 0);
}

function leaveSession(signIn) {
  return isTyped() ? showSignedOut(signIn) : location.reload();
}

async function refresh() {
  if (document.hidden) return;
  const late = setTimeout(() => showStale("no answer for 10 s"), LATE_MS);
  try {
    await refreshParts();
  } finally {
    clearTimeout(late);
  }
}

async function refreshParts() {
  const signal = AbortSignal.timeout(ANSWER_MAX_MS);
  const answer = await fetch(location.href, { headers: { accept: "text/html" }, signal });
  // The session has ended: the answer is the sign-in page.
  if (answer.redirected) return leaveSession(answer.url);
  if (answer.status === 404) return showGone();
  if (!answer.ok) return showStale(`the server answers ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  noteServerTime(page);
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
  if (isGone || liveParts().length === 0) return;
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

if (liveParts().length > 0) {
  document.getElementById("not-refreshed")?.setAttribute("role", "status");
  showFresh(false);
  schedule();
  for (const input of ["pointerdown", "keydown"]) addEventListener(input, noteInput, { passive: true });
  document.addEventListener("visibilitychange", () => document.hidden || noteInput());
}
