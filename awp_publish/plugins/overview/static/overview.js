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

addCopyButtons(document);
poll();
