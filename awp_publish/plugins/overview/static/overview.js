// What makes the overview quicker to use. Without it, its forms are sent and its pages are loaded as usual.
"use strict";

const PARTS = ["answers", "requests"];

function addCopyButtons(root) {
  if (!navigator.clipboard) return;
  for (const block of root.querySelectorAll("pre[data-copy]:not(:has(button))")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy: ${block.getAttribute("aria-label")}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    block.append(button);
  }
}

function adopt(part, fresh) {
  const old = document.getElementById(part);
  const open = old.querySelector("input.tab:checked");
  old.replaceWith(fresh);
  if (open && document.getElementById(open.id)) document.getElementById(open.id).checked = true;
  addCopyButtons(fresh);
}

function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

async function send(form, name, value) {
  const fields = new URLSearchParams();
  const chosen = new Set();
  for (const [key, given] of new FormData(form)) {
    if (typeof given === "string") {
      fields.append(key, given);
    } else if (given.size) {
      if (!chosen.has(key)) fields.delete(key);  // what was sent before gives way
      chosen.add(key);
      fields.append(key, await base64(given));
    }
  }
  if (name) fields.set(name, value);
  // Credentials that were typed once go along, and no page holds them.
  for (const typed of document.querySelectorAll("form[data-live] input[type=password]")) {
    if (typed.value && !fields.get(typed.name)) fields.set(typed.name, typed.value);
  }
  const response = await fetch(form.getAttribute("action"), { method: "POST", body: fields, headers: { accept: "text/html" } });
  return new DOMParser().parseFromString(await response.text(), "text/html");
}

let polling = 0;

function poll() {
  const job = document.querySelector("[data-job]");
  clearTimeout(polling);
  if (!job) return;
  polling = setTimeout(async () => {
    const form = job.querySelector("form");
    const fresh = form && job.isConnected ? (await send(form)).querySelector(".job") : null;
    if (fresh && job.isConnected) job.replaceWith(fresh);
    poll();
  }, 1000);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form[data-live]")) return;
  event.preventDefault();
  const button = event.submitter;
  const answers = document.getElementById("answers");
  answers.setAttribute("aria-busy", "true");
  try {
    const page = await send(form, button && button.name, button && button.value);
    const parts = PARTS.map((part) => page.getElementById(part));
    if (parts.includes(null) || page.querySelector("form [role=alert]")) return HTMLFormElement.prototype.submit.call(form);
    if (button && button.value === "show") parts[0] = null;
    PARTS.forEach((part, number) => parts[number] && adopt(part, parts[number]));
    if (button && button.value !== "show") document.getElementById("answers").scrollIntoView();
    poll();
  } finally {
    document.getElementById("answers")?.removeAttribute("aria-busy");
  }
});

let typing = 0;

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form || !form.querySelector("[name=awp-do][value=show]")) return;
  clearTimeout(typing);
  typing = setTimeout(async () => {
    const page = await send(form, "awp-do", "show");
    const requests = page.getElementById("requests");
    if (requests && !page.querySelector("form [role=alert]")) adopt("requests", requests);
  }, 400);
});

// A connect button copies what its first client needs, and shows the rest.
function copyOnOpen(button) {
  const summary = button.querySelector("summary");
  summary.addEventListener("click", async () => {
    const text = button.querySelector("pre[data-copy] code");
    if (button.open || !text || !navigator.clipboard) return;
    const name = summary.dataset.name ?? (summary.dataset.name = summary.textContent);
    await navigator.clipboard.writeText(text.textContent);
    summary.textContent = `${name}: copied`;
    summary.classList.add("copied");
    setTimeout(() => { summary.textContent = name; summary.classList.remove("copied"); }, 1500);
  });
}

function closePanels(event) {
  const kept = event.type === "click" ? event.target.closest(".client-button") : null;
  if (event.type === "keydown" && event.key !== "Escape") return;
  for (const open of document.querySelectorAll(".client-button[open]")) {
    if (open === kept) continue;
    open.open = false;
    if (event.type === "keydown") open.querySelector("summary").focus();
  }
}

// The table of actions is filtered while somebody types. Sorting loads the page anew, with the filter.
function filterActions(form) {
  const table = document.querySelector(".actions table");
  const words = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  const effect = form.elements.effect.value;
  let count = 0, all = 0;
  for (const group of table.tBodies) {
    let shown = 0;
    const head = group.querySelector(".group");
    for (const row of group.querySelectorAll("tr[data-effect]")) {
      const text = `${head ? head.textContent : ""} ${row.querySelector("th").textContent}`.toLowerCase();
      row.hidden = (effect && row.dataset.effect !== effect) || !words.every((word) => text.includes(word));
      shown += !row.hidden;
      all += 1;
    }
    if (head) head.hidden = !shown;
    count += shown;
  }
  form.querySelector("output").textContent = `${count} of ${all} action${all === 1 ? "" : "s"}`;
  for (const link of table.querySelectorAll("a.sort")) {
    const target = new URL(link.href);
    for (const name of ["words", "effect"]) {
      const value = form.elements[name].value;
      if (value) target.searchParams.set(name, value); else target.searchParams.delete(name);
    }
    link.href = target;
  }
}

const filter = document.querySelector("form[data-filter]");
// What the server left out of the table cannot be shown by the script: then the form is sent as usual.
if (filter && !filter.elements.words.value && !filter.elements.effect.value) {
  document.documentElement.classList.add("live");
  filter.addEventListener("input", () => filterActions(filter));
  filter.addEventListener("submit", (event) => event.preventDefault());
}

document.querySelectorAll(".client-button").forEach(copyOnOpen);
document.addEventListener("click", closePanels);
document.addEventListener("keydown", closePanels);
addCopyButtons(document);
poll();
