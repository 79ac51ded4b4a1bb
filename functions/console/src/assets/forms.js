// Forms: each is sent once, and says how long it has waited for its answer.

// The server answers within 25 s. Whoever stops the browser meanwhile can send again after this time.
const SENDING_MS = 30_000;

// What has not been answered for so long is said.
const LATE_MS = 10_000;

let sentAt = -Infinity;

// A button that is pressed twice acts once. The button stays enabled, because the browser sends its value.
function sendOnce(event) {
  if (event.defaultPrevented) return;
  if (event.target.method !== "post") return noteWaiting(event.target);
  if (performance.now() - sentAt < SENDING_MS) return event.preventDefault();
  sentAt = performance.now();
  event.submitter?.setAttribute("aria-busy", "true");
  noteWaiting(event.target);
}

let waitingNote;
let waitingTimer;

// The page stays as it is until the answer comes. That it waits is announced once; the seconds are only shown.
function noteWaiting(form) {
  endWaiting();
  const began = performance.now();
  const words = Object.assign(document.createElement("span"), { role: "status" });
  const count = Object.assign(document.createElement("span"), { ariaHidden: "true" });
  waitingNote = Object.assign(document.createElement("p"), { className: "hint waiting" });
  waitingNote.append(words, count);
  form.append(waitingNote);
  waitingTimer = setInterval(() => {
    const ms = performance.now() - began;
    if (ms < LATE_MS) return;
    const isOver = ms >= SENDING_MS;
    const text = isOver ? lostText(form) : "Still waiting";
    if (words.textContent !== text) words.textContent = text;
    count.textContent = isOver ? "" : `, ${Math.floor(ms / 1000)} s`;
    if (!isOver) return;
    clearInterval(waitingTimer);
    endBusy();
    // The part of the page goes on refreshing, which would remove the note.
    waitingNote.classList.add("over");
    form.closest("[data-live]")?.before(waitingNote);
  }, 1000);
}

const lostText = ({ method }) =>
  method === "post" ? "No answer came. What you sent may have been done." : "No answer came.";

function endWaiting() {
  clearInterval(waitingTimer);
  waitingNote?.remove();
}

function endBusy() {
  for (const button of document.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
}

// The browser may show the same page again, as it was left.
function allowSending({ persisted }) {
  if (!persisted) return;
  sentAt = -Infinity;
  endWaiting();
  endBusy();
}

addEventListener("submit", sendOnce);
addEventListener("pageshow", allowSending);
