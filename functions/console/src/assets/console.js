// Times in the visitor's zone. Every page works without the scripts.
"use strict";

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

showLocalTimes(document);
showZone();
forgetNotice();
