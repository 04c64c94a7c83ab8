// Keys, and parts of a page that are read again while a run goes on. Each tab works without it but for Review.
"use strict";

function typing(target) {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function say(text) {
  document.getElementById("said").textContent = text;
}

function openHelp() {
  const help = document.getElementById("help");
  if (!help.open) help.showModal();
}

let waitsForTab = false;
let at = -1;

function choose(step) {
  const rows = [...document.querySelectorAll("[data-open]")];
  if (!rows.length) return;
  at = Math.max(0, Math.min(rows.length - 1, at + step));
  const link = rows[at].matches("a") ? rows[at] : rows[at].querySelector("a");
  link.focus();
  rows[at].scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) {
    if (event.key === "Escape" && typing(event.target)) event.target.blur();
    return;
  }
  if (document.getElementById("help").open) return;
  if (waitsForTab) {
    waitsForTab = false;
    const tabs = document.querySelectorAll("nav a");
    const tab = tabs[Number(event.key) - 1];
    if (tab) tab.click();
    return;
  }
  const link = { n: "a[rel=next]", p: "a[rel=prev]" }[event.key];
  if (event.key === "?") openHelp();
  else if (event.key === "g") waitsForTab = true;
  else if (event.key === "/") {
    const search = document.querySelector("input[type=search]");
    if (!search) return;
    search.focus();
    search.select();
  } else if (event.key === "j") choose(1);
  else if (event.key === "k") choose(-1);
  else if (link && document.querySelector(link)) document.querySelector(link).click();
  else return;
  event.preventDefault();
});

async function refresh(part) {
  if (document.hidden || part.contains(document.activeElement)) return part;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return part;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(part.id);
    if (made && made.outerHTML !== part.outerHTML) {
      part.replaceWith(made);
      return made;
    }
  } catch {
    say("The page's server does not answer.");
  }
  return part;
}

async function keepFresh(part) {
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(part.dataset.every)));
    part = await refresh(part);
  }
}

document.getElementById("keys").addEventListener("click", openHelp);
document.querySelectorAll("[data-every]").forEach(keepFresh);
document.querySelectorAll("select[data-submit]").forEach((select) => {
  select.addEventListener("change", () => select.form.submit());
});
