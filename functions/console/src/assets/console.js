// The console's script. Every page works without it.
"use strict";

// The notice of an action is of a moment: an address that is kept or sent to others does not have it.
function forgetNotice() {
  const url = new URL(location.href);
  if (!url.searchParams.has("done")) return;
  for (const name of ["done", "at"]) url.searchParams.delete(name);
  history.replaceState(history.state, "", url);
}

forgetNotice();
