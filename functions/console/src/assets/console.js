// Times in the visitor's zone, and live parts that refresh by themselves. Every page works without this file.
"use strict";

const REFRESH_EVERY_MS = 5000;

const zone = new Intl.DateTimeFormat("sv-SE", {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
});

function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) time.textContent = zone.format(at);
  }
}

// A part in which the visitor types, has chosen a text or has opened something is left as it is.
function isInUse(part) {
  const selection = document.getSelection();
  const isSelected = selection && !selection.isCollapsed && part.contains(selection.anchorNode);
  return isSelected || part.contains(document.activeElement) || part.querySelector("details[open]");
}

async function refresh() {
  const parts = document.querySelectorAll("[data-live][id]");
  if (document.hidden || parts.length === 0) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  // The session has ended: the sign-in page says so.
  if (answer.redirected) return void location.reload();
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of parts) {
    const newer = page.getElementById(part.id);
    if (!newer || isInUse(part)) continue;
    showLocalTimes(newer);
    if (newer.innerHTML !== part.innerHTML) part.replaceChildren(...newer.childNodes);
  }
}

function keepFresh() {
  const again = () => setTimeout(keepFresh, REFRESH_EVERY_MS);
  refresh().then(again, again);
}

showLocalTimes(document);
if (document.querySelector("[data-live]")) setTimeout(keepFresh, REFRESH_EVERY_MS);
