// Times in one zone: the browser's, or UTC if the visitor chose it. The browser keeps the choice.

const BROWSER_ZONE = new Intl.DateTimeFormat().resolvedOptions().timeZone;
const ZONE_KEY = "posthaste-zone";

const [DAY, MINUTE, SECOND] = [
  { year: "numeric", month: "2-digit", day: "2-digit" },
  { hour: "2-digit", minute: "2-digit" },
  { second: "2-digit" },
];

// Storage may be forbidden: the choice is then kept as long as the page.
function readZone() {
  try {
    return localStorage.getItem(ZONE_KEY) === "UTC" ? "UTC" : BROWSER_ZONE;
  } catch {
    return BROWSER_ZONE;
  }
}

function keepZone() {
  try {
    if (zone === "UTC") localStorage.setItem(ZONE_KEY, zone);
    else localStorage.removeItem(ZONE_KEY);
  } catch {}
}

let zone = readZone();
let formats = makeFormats();

function makeFormats() {
  // The browser's own zone is not named: some have a name for it that they do not take.
  const chosen = zone === "UTC" ? { timeZone: zone } : {};
  const inZone = (shown) => new Intl.DateTimeFormat("sv-SE", { ...shown, ...chosen });
  return {
    moment: inZone({ ...DAY, ...MINUTE, ...SECOND }),
    time: inZone({ ...MINUTE, ...SECOND }),
    clock: inZone(MINUTE),
  };
}

function showLocalTimes(root) {
  for (const it of root.querySelectorAll("time[datetime]")) {
    const at = new Date(it.dateTime);
    if (!Number.isNaN(at.getTime())) it.textContent = formats.moment.format(at);
  }
  // What follows the text is its title.
  for (const it of root.querySelectorAll("[data-time]")) {
    it.firstChild.data = formats.clock.format(new Date(it.dataset.time));
  }
  for (const it of root.querySelectorAll("[data-zone]")) it.textContent = zone;
  for (const it of root.querySelectorAll("a[data-day]")) showDay(it);
  showAges(root);
}

// The link to what happened today: the day begins in the zone that is shown.
function showDay(link) {
  const begin = new Date();
  if (zone === "UTC") begin.setUTCHours(0, 0, 0, 0);
  else begin.setHours(0, 0, 0, 0);
  const url = new URL(link.href);
  url.searchParams.set("from", begin.toISOString());
  link.href = url.pathname + url.search;
  const asked = new URL(location.href).searchParams;
  const isAsked = ["today", begin.toISOString()].includes(asked.get("from")) && !asked.get("to");
  if (isAsked) link.setAttribute("aria-current", "true");
  else link.removeAttribute("aria-current");
}

// The day goes on while the page is open.
function showMoving() {
  showAges(document);
  for (const it of document.querySelectorAll("a[data-day]")) showDay(it);
}

// The clock of the browser minus that of the server: ages are of the server's clock.
let clockDifference = 0;

function noteServerTime(root) {
  const at = Date.parse(root.querySelector("[data-now]")?.dataset.now);
  if (!Number.isNaN(at)) clockDifference = Date.now() - at;
}

function ageText(ms) {
  const seconds = Math.floor(Math.abs(ms) / 1000);
  const [count, unit] =
    seconds < 60 ? [seconds, "s"]
    : seconds < 3_600 ? [seconds / 60, "min"]
    : seconds < 172_800 ? [seconds / 3_600, "h"]
    : [seconds / 86_400, "days"];
  const length = `${Math.floor(count)} ${unit}`;
  return ms < 0 ? `in ${length}` : `${length} ago`;
}

function showAges(root) {
  const now = Date.now() - clockDifference;
  for (const it of root.querySelectorAll(".ago[data-since]")) {
    const text = ageText(now - Date.parse(it.dataset.since));
    if (it.textContent !== text) it.textContent = text;
  }
}

function showZone() {
  const shown = document.getElementById("zone");
  if (!shown || BROWSER_ZONE === "UTC") return;
  const format = new Intl.DateTimeFormat("en", { timeZoneName: "shortOffset", timeZone: zone });
  const offset = format.formatToParts(new Date()).find((part) => part.type === "timeZoneName").value;
  const text = `Times are in ${zone} (${offset.replace("GMT", "UTC")}). Point at one to see UTC.`;
  shown.textContent = zone === "UTC" ? "Times are in UTC." : text;
  const button = document.getElementById("zone-switch");
  button.textContent = `Show times in ${zone === "UTC" ? BROWSER_ZONE : "UTC"}`;
  button.hidden = false;
}

function switchZone() {
  zone = zone === "UTC" ? BROWSER_ZONE : "UTC";
  keepZone();
  formats = makeFormats();
  showLocalTimes(document);
  showZone();
  for (const show of timeFields) show();
}

const WITH_ZONE = /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d.*(z|[+-]\d\d:\d\d)$/i;

// Each shows the time of a field in the zone.
const timeFields = [];

// A field for a time becomes a picker in the zone. The form sends the time with its offset, by a hidden field.
// A word such as 1h stays a text.
function addPicker(field) {
  const written = field.value.trim();
  const isMoment = WITH_ZONE.test(written) && !Number.isNaN(Date.parse(written));
  if (written !== "" && !isMoment) return;
  const sent = Object.assign(document.createElement("input"), { type: "hidden", name: field.name, value: written });
  const hint = Object.assign(document.createElement("p"), { className: "hint", id: `${field.id}-hint` });
  const described = [field.getAttribute("aria-describedby"), hint.id].filter(Boolean).join(" ");
  field.setAttribute("aria-describedby", described);
  field.removeAttribute("name");
  Object.assign(field, { value: "", type: "datetime-local", step: 1 });
  field.after(sent, hint);
  const show = () => {
    field.value = sent.value && formats.moment.format(new Date(sent.value)).replace(" ", "T");
    field.defaultValue = field.value;
    hint.textContent = timeHint(sent);
  };
  const take = () => {
    const at = new Date(zone === "UTC" ? `${field.value}Z` : field.value);
    sent.value = field.value && !Number.isNaN(at.getTime()) ? at.toISOString() : "";
    hint.textContent = timeHint(sent);
  };
  field.addEventListener("input", take);
  timeFields.push(show);
  show();
}

function timeHint(sent) {
  if (!sent.value) return "";
  const at = new Date(sent.value);
  const utc = zone === "UTC" ? "" : `${at.toISOString().slice(0, 19).replace("T", " ")} UTC.`;
  const isLate = sent.name === "from" && at > new Date();
  return `${utc} ${isLate ? "This is in the future." : ""}`.trim();
}

noteServerTime(document);
showLocalTimes(document);
showZone();
document.querySelectorAll('form.filters :is([name="from"], [name="to"]):not([type="hidden"])').forEach(addPicker);
document.getElementById("zone-switch")?.addEventListener("click", switchZone);
setInterval(() => document.hidden || showMoving(), 1000);
