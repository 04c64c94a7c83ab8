// The review by keys. A verdict is kept in this browser until the server has said that it is on disk.
"use strict";

const item = document.getElementById("item");
const name = document.getElementById("reviewer");
const box = document.getElementById("outbox");
const place = `goldilocks ${location.pathname}`;
const RETRY_MS = 3000;
const ANSWER_MS = 60000; // the verifier may have to start first
const SKIPPED = 200; // of the last skipped problems, which come again at the end
let busy = false;
let skipped = [];

function stored(key, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(`${place} ${key}`)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

function store(key, value) {
  localStorage.setItem(`${place} ${key}`, JSON.stringify(value));
}

function problem() {
  return item.querySelector("[data-problem]")?.dataset.problem || "";
}

function field(id) {
  return document.getElementById(id);
}

async function post(message) {
  const csrf = document.querySelector("meta[name=csrf]").content;
  const headers = { "content-type": "application/json", "x-goldilocks-csrf": csrf };
  const answer = await fetch("review/verdict", {
    method: "POST",
    headers,
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(ANSWER_MS),
  });
  const told = answer.headers.get("content-type")?.includes("json") ? await answer.json() : { error: await answer.text() };
  return { status: answer.status, told };
}

function showOutbox() {
  const waiting = stored("outbox", []).length;
  box.hidden = waiting === 0;
  if (waiting) box.textContent = `${waiting} not yet written down: ${stored("trouble", "the server does not answer")}. Kept in this browser, and sent again.`;
}

// Sends what waits, oldest first; returns what the server would not have, and why.
async function sendOutbox() {
  for (;;) {
    const [first] = stored("outbox", []);
    if (!first) {
      showOutbox();
      return null;
    }
    let reply;
    try {
      reply = await post(first);
    } catch {
      store("trouble", "the server does not answer");
      showOutbox();
      return null;
    }
    if (reply.status === 403 || reply.status === 401) {
      store("trouble", "this page is too old: load it again");
      showOutbox();
      return null;
    }
    if (reply.status === 409 || reply.status >= 500) {
      store("trouble", reply.told.error || "the server is in trouble");
      showOutbox();
      return null;
    }
    store("outbox", stored("outbox", []).slice(1));
    showOutbox();
    if (reply.status !== 200) return { message: first, error: reply.told.error };
    if (first.verdict !== "undo") store("history", [...stored("history", []), first.problem].slice(-200));
  }
}

async function next(wanted) {
  const query = new URLSearchParams({ reviewer: name.value.trim(), skipped: skipped.join(",") });
  if (wanted) query.set("problem", wanted);
  let answer;
  try {
    answer = await fetch(`review/next?${query}`);
  } catch {
    say("The page's server does not answer.");
    return;
  }
  const made = new DOMParser().parseFromString(await answer.text(), "text/html");
  const main = made.querySelector("main") || made.body;
  item.replaceChildren(...main.childNodes);
  const draft = stored(`draft ${problem()}`, {});
  if (field("note")) field("note").value = draft.note || "";
  if (draft.answer) openEdit(draft.answer);
  window.scrollTo(0, 0);
  if (!draft.answer) item.focus({ preventScroll: true });
}

function openEdit(text) {
  field("edit").hidden = false;
  field("answer").value = text;
  field("answer").focus();
  field("answer").select();
}

function complain(text) {
  const wrong = field("wrong");
  wrong.textContent = text;
  wrong.hidden = false;
}

async function deliver(message, wanted) {
  busy = true;
  store("outbox", [...stored("outbox", []), message]);
  try {
    const refused = await sendOutbox();
    if (refused) {
      if (problem() !== refused.message.problem) await next(refused.message.problem);
      complain(refused.error);
      return;
    }
    localStorage.removeItem(`${place} draft ${message.problem}`);
    if (!stored("outbox", []).length) await next(wanted); // a key pressed before it is shown is meant for it, not for this one
  } finally {
    busy = false;
  }
}

function decide(verdict, answer) {
  if (!name.value.trim()) {
    name.focus();
    say("Give your name first.");
    return;
  }
  const note = field("note").value;
  deliver({ problem: problem(), verdict, answer, note, reviewer: name.value.trim() });
}

async function undo() {
  const history = stored("history", []);
  const last = history.pop();
  if (!last) {
    say("Nothing to undo.");
    return;
  }
  store("history", history);
  await deliver({ problem: last, verdict: "undo", reviewer: name.value.trim() }, last);
}

async function skip() {
  busy = true;
  skipped = [...skipped.filter((one) => one !== problem()), problem()].slice(-SKIPPED);
  try {
    await next();
  } finally {
    busy = false;
  }
}

function act(key) {
  if (busy || stored("outbox", []).length) return;
  if (key === "u") undo();
  else if (key === "n") next();
  else if (!problem()) return;
  else if (key === "x") decide("reject", null);
  else if (key === "s") skip();
  else if (key === "e") openEdit(field("answer").value || item.querySelector("[data-answer]")?.dataset.answer || "");
  else if (key === "m") field("note").focus();
  else {
    const chosen = item.querySelector(`[data-answer][data-key="${key}"]`);
    if (chosen) decide("accept", chosen.dataset.answer);
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.getElementById("help").open) return;
  if (typing(event.target)) {
    if (event.key === "Escape") {
      if (event.target.id === "answer") field("edit").hidden = true;
      event.target.blur();
      item.focus();
    }
    return;
  }
  if (/^[arexusm1-9]$/.test(event.key) && !waitsForTab) {
    event.preventDefault();
    act(event.key);
  }
});

item.addEventListener("click", (event) => {
  const button = event.target.closest("[data-key]");
  if (button) act(button.dataset.key);
});

item.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!busy && !stored("outbox", []).length && field("answer").value.trim()) decide("accept", field("answer").value.trim());
});

item.addEventListener("input", () => {
  const open = !field("edit").hidden;
  store(`draft ${problem()}`, { note: field("note").value, answer: open ? field("answer").value : "" });
});

name.addEventListener("change", () => {
  localStorage.setItem("goldilocks reviewer", name.value.trim());
  if (name.value.trim()) next();
});
name.addEventListener("keydown", (event) => {
  if (event.key === "Enter") name.blur();
});

setInterval(async () => {
  if (busy || !stored("outbox", []).length) return;
  busy = true;
  const refused = await sendOutbox();
  busy = false;
  if (refused) {
    await next(refused.message.problem);
    complain(refused.error);
  } else if (!stored("outbox", []).length) await next();
}, RETRY_MS);

name.value = localStorage.getItem("goldilocks reviewer") || "";
showOutbox();
if (name.value) sendOutbox().then(() => next());
else name.focus();
