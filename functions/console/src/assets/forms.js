// Forms: each is sent once, and a field for a time in UTC says what it means in the visitor's zone.

// The server answers within 25 s. Whoever stops the browser meanwhile can send again after this time.
const SENDING_MS = 30_000;

let sentAt = -Infinity;

// A button that is pressed twice acts once. The button stays enabled, because the browser sends its value.
function sendOnce(event) {
  if (event.defaultPrevented || event.target.method !== "post") return;
  if (performance.now() - sentAt < SENDING_MS) return event.preventDefault();
  sentAt = performance.now();
  event.submitter?.setAttribute("aria-busy", "true");
}

// The browser may show the same page again, as it was left.
function allowSending({ persisted }) {
  if (!persisted) return;
  sentAt = -Infinity;
  for (const button of document.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}

const WITH_ZONE = /^\d{4}-\d\d-\d\d[t ]\d\d:\d\d.*(z|[+-]\d\d:\d\d)$/i;

function timeHint(field) {
  const at = WITH_ZONE.test(field.value.trim()) ? new Date(field.value.trim()) : new Date(NaN);
  if (Number.isNaN(at.getTime())) return "";
  const local = zone === "UTC" ? "" : `${moment.format(at)} in ${zone}.`;
  const isLate = field.name === "from" && at > new Date();
  return `${local} ${isLate ? "This is in the future." : ""}`.trim();
}

function addTimeHint(field) {
  const hint = document.createElement("p");
  Object.assign(hint, { className: "hint", id: `${field.id}-hint` });
  field.after(hint);
  const described = [field.getAttribute("aria-describedby"), hint.id].filter(Boolean).join(" ");
  field.setAttribute("aria-describedby", described);
  const show = () => (hint.textContent = timeHint(field));
  field.addEventListener("input", show);
  show();
}

addEventListener("submit", sendOnce);
addEventListener("pageshow", allowSending);
document.querySelectorAll('form.filters :is([name="from"], [name="to"])').forEach(addTimeHint);
