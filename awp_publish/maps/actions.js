// The runtime of this site's actions.json in a visitor's tab, and the eyes and hands of the runner in a browser.
//
// Nothing happens until the visitor pairs the tab: by an element with data-agents-pair, or agentsBridge.pair(). Then a
// badge says so as long as it holds, with the code that an agent needs, and with a way to end it. The tab is known to
// the bridge by a key in sessionStorage, over full page loads too; single steps come from there, and none comes twice.
// Neither eval nor inline markup is used, so that a strict Content-Security-Policy may stand.
(() => {
  "use strict";
  if (window.agentsBridge) return;

  const SITE = /*SITE*/{}/*SITE*/;
  const MAX_FOUND = 2000;
  const MAX_VALUES = 100000;
  const MAX_TEXT = 20000;
  const MAX_HTML = 100000;
  const NAVIGATION_MS = 10000; // for a page that a click has sent for; it ends this script before
  const collapse = (text) => (text || "").replace(/\s+/g, " ").trim();

  class Failure extends Error {
    constructor(code, message, evidence = {}) {
      super(message);
      this.code = code;
      this.evidence = evidence;
    }
  }

  // --- The page: elements ---

  const refOf = (element) => {
    const steps = [];
    for (let node = element; node && node !== document.body; node = node.parentNode) {
      if (!node.parentNode) return "";
      steps.unshift(Array.prototype.indexOf.call(node.parentNode.childNodes, node));
    }
    return ["0", ...steps].join("/");
  };

  // What was shown of this document, by its ref and by its centre: whatever the page does meanwhile, these are meant.
  const DOCUMENT = Math.random().toString(36).slice(2);
  const seen = new Map();
  const remember = (key, element) => {
    if (seen.size >= 10 * MAX_FOUND) seen.clear();
    seen.set(key, new WeakRef(element));
  };
  const stale = () => new Failure("target_not_found", "The element is no longer on the page. Find it again.", { stale: true });
  const recall = (key) => {
    const element = seen.has(key) ? seen.get(key).deref() : null;
    if (element === undefined || (element && !element.isConnected)) throw stale();
    return element;
  };

  const elementAt = (ref) => {
    let node = recall(String(ref));
    if (node) return node;
    node = document.body;
    for (const step of String(ref).split("/").slice(1)) node = node && node.childNodes[Number(step)];
    if (!node || node.nodeType !== Node.ELEMENT_NODE) throw stale();
    return node;
  };

  const select = (css, root = document.body) => {
    try {
      return [...root.querySelectorAll(css)];
    } catch {
      throw new Failure("invalid_selector", `"${css}" cannot be used as a selector.`, { selector: css });
    }
  };

  const isVisible = (element) => {
    if (element === document.body) return true;
    if (!element.isConnected || element.closest("template, script, style, noscript, head")) return false;
    if (element.tagName === "INPUT" && element.type === "hidden") return false;
    if (typeof element.checkVisibility === "function") {
      return element.checkVisibility({ opacityProperty: true, visibilityProperty: true, checkOpacity: true, checkVisibilityCSS: true });
    }
    const style = getComputedStyle(element);
    return element.getClientRects().length > 0 && style.visibility === "visible" && style.opacity !== "0";
  };

  const isField = (element) => ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);

  const textOf = (element) => {
    if (element.tagName === "SELECT") return collapse([...element.selectedOptions].map((one) => one.text).join(" "));
    if (isField(element)) return ["password", "checkbox", "radio"].includes(element.type) ? "" : collapse(element.value);
    return collapse(element.innerText === undefined ? element.textContent : element.innerText).slice(0, MAX_TEXT);
  };

  const nameOf = (element) => {
    const referred = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(Boolean).slice(0, 10);
    const named = referred.map((id) => document.getElementById(id)).filter(Boolean).map((one) => collapse(one.textContent));
    if (named.length) return named.join(" ");
    const label = collapse(element.getAttribute("aria-label"));
    if (label) return label;
    for (const one of element.labels || []) {
      const said = collapse([...one.childNodes].filter((node) => node !== element && !node.contains(element)).map((node) => node.textContent).join(" "));
      if (said) return said;
    }
    const own = collapse(element.getAttribute("title")) || collapse(element.getAttribute("placeholder"));
    if (isField(element)) {
      if (own) return own;
      if (element.type === "image") return collapse(element.alt);
      return ["submit", "button", "reset"].includes(element.type) ? collapse(element.value) : "";
    }
    const parts = { FIELDSET: "legend", TABLE: "caption" }[element.tagName];
    const part = parts && element.querySelector(`:scope > ${parts}`);
    const images = [...element.querySelectorAll("img[alt]")].map((one) => one.alt).join(" ");
    return own || (part ? collapse(part.textContent) : textOf(element).slice(0, 200)) || collapse(images || element.getAttribute("alt"));
  };

  const ATTRIBUTES = ["role", "type", "href", "list", "multiple", "size", "contenteditable"];

  const describe = (element) => {
    const box = element.getBoundingClientRect();
    const ref = refOf(element);
    remember(ref, element);
    remember(`${box.x + box.width / 2},${box.y + box.height / 2}`, element);
    const attributes = {};
    for (const name of ATTRIBUTES) if (element.hasAttribute(name)) attributes[name] = element.getAttribute(name).slice(0, 200);
    return {
      ref,
      tag: element.localName,
      attributes,
      name: nameOf(element).slice(0, 1000),
      text: textOf(element),
      visible: isVisible(element),
      enabled: !(element.matches(":disabled") || (element.getAttribute("aria-disabled") || "").toLowerCase() === "true"),
      box: [box.x, box.y, box.width, box.height],
    };
  };

  // --- The page: what can be done ---

  const TYPED = ["text", "search", "tel", "url", "email", "password", "number", "range", "color", "date", "month", "week", "time", "datetime-local"];

  const fieldFor = (element) => {
    const field = element.tagName === "LABEL" ? element.control || element : element;
    const typed = field.tagName === "TEXTAREA" || (field.tagName === "INPUT" && TYPED.includes(field.type));
    if ((typed && !field.readOnly && !field.disabled) || field.isContentEditable) return field;
    throw new Failure("target_not_editable", `The ${field.localName} is not a field that can be typed into.`);
  };

  const insert = ({ ref, text, mode }) => {
    const given = ref === null || ref === undefined ? document.activeElement : elementAt(ref);
    if (!given || given === document.body) throw new Failure("target_not_editable", "No field that takes text has the focus.");
    const field = fieldFor(given);
    field.focus();
    if (field.isContentEditable && !isField(field)) {
      field.textContent = mode === "append" ? field.textContent + text : text;
    } else {
      const value = mode === "append" ? field.value + text : text;
      const own = Object.getPrototypeOf(field); // what frameworks put over the property would not notice
      const setter = Object.getOwnPropertyDescriptor(own, "value");
      if (setter && setter.set) setter.set.call(field, value);
      else field.value = value;
    }
    field.dispatchEvent(new InputEvent("input", { bubbles: true, data: text, inputType: "insertText" }));
    field.dispatchEvent(new Event("change", { bubbles: true }));
    return { inserted: true, inserted_length: text.length };
  };

  let leaving = false;
  addEventListener("pagehide", () => { leaving = true; });
  addEventListener("pageshow", () => { leaving = false; });

  // Says whether what `act` did has sent for another page. Handlers of the page have run by then, and may have refused.
  const sendsForPage = (act) => {
    let sent = false;
    const noteSubmit = (event) => {
      const target = (event.submitter && event.submitter.formTarget) || event.target.target;
      const dialog = ((event.submitter && event.submitter.formMethod) || event.target.method) === "dialog";
      queueMicrotask(() => { if (!event.defaultPrevented && !dialog && (!target || target === "_self")) sent = true; });
    };
    const noteClick = (event) => {
      const link = event.target.closest && event.target.closest("a[href], area[href]");
      const elsewhere = link && (link.hasAttribute("download") || (link.target && link.target !== "_self"));
      if (!link || elsewhere || !/^https?:$/.test(link.protocol)) return;
      const [before, after] = [location.href.split("#")[0], link.href.split("#")[0]];
      queueMicrotask(() => { if (!event.defaultPrevented && (before !== after || !link.href.includes("#"))) sent = true; });
    };
    addEventListener("submit", noteSubmit);
    addEventListener("click", noteClick);
    try {
      act();
    } finally {
      removeEventListener("submit", noteSubmit);
      removeEventListener("click", noteClick);
    }
    return new Promise((resolve) => setTimeout(() => resolve(sent || leaving), 0));
  };

  // A step that has sent for a page is answered by the new page: it counts as done when that has come.
  const settled = async (act, answer) => {
    if (!(await sendsForPage(act))) return answer;
    await new Promise((resolve) => setTimeout(resolve, NAVIGATION_MS));
    return answer;
  };

  // What is at a point, and where that is once it is scrolled to: centres may come from outside of the window.
  // A centre that was told of this document means its element, wherever that is by now.
  const reveal = ({ x, y, document: from }) => {
    const place = (element) => element.getBoundingClientRect();
    if (!Number.isFinite(x) || !Number.isFinite(y)) throw new Failure("point_out_of_viewport", "A point needs x and y.");
    if (from && from !== DOCUMENT) throw stale();
    const meant = recall(`${x},${y}`);
    if (meant) {
      if (!isVisible(meant)) throw new Failure("target_not_visible", "The element at that point is hidden.");
      const centre = () => { const box = place(meant); return { x: box.left + box.width / 2, y: box.top + box.height / 2 }; };
      let now = centre();
      if (now.x < 0 || now.y < 0 || now.x > innerWidth || now.y > innerHeight) {
        meant.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
        now = centre();
      }
      return { element: document.elementFromPoint(now.x, now.y) || meant, ...now };
    }
    let found = document.elementFromPoint(x, y);
    if (found) return { element: found, x, y };
    const fits = (one) => { const box = place(one); return x >= box.left && x <= box.right && y >= box.top && y <= box.bottom; };
    const around = select("*").filter((one) => isVisible(one) && fits(one)).pop();
    if (!around) throw new Failure("point_out_of_viewport", "No element is at that point.");
    const box = place(around);
    const [dx, dy] = [x - box.left, y - box.top];
    around.scrollIntoView({ block: "center", inline: "nearest", behavior: "instant" });
    const moved = place(around);
    const at = { x: moved.left + dx, y: moved.top + dy };
    found = document.elementFromPoint(at.x, at.y);
    return { element: found && around.contains(found) ? found : around, ...at };
  };

  const mouse = (element, type, { x, y }, detail = 1) => {
    const kind = type.startsWith("pointer") && window.PointerEvent ? PointerEvent : MouseEvent;
    return element.dispatchEvent(new kind(type, { bubbles: true, cancelable: true, composed: true, view: window, clientX: x, clientY: y, detail, button: 0 }));
  };

  const click = (element, at, detail = 1) => {
    for (const type of ["pointerdown", "mousedown"]) mouse(element, type, at, detail);
    const focusable = element.closest("a[href], button, input, select, textarea, label, [tabindex], [contenteditable]");
    if (focusable && focusable.tagName !== "LABEL") focusable.focus({ preventScroll: true });
    for (const type of ["pointerup", "mouseup"]) mouse(element, type, at, detail);
    element.click();
  };

  const press = ({ key, modifiers }) => {
    const held = (modifiers || []).map((one) => String(one).toLowerCase());
    const names = { enter: "Enter", tab: "Tab", space: " ", escape: "Escape", backspace: "Backspace", delete: "Delete", arrowup: "ArrowUp", arrowdown: "ArrowDown", arrowleft: "ArrowLeft", arrowright: "ArrowRight", home: "Home", end: "End", pageup: "PageUp", pagedown: "PageDown" };
    const name = key.length === 1 ? key : names[key.toLowerCase()];
    if (name === undefined) throw new Failure("invalid_key", `"${key}" is not a key.`);
    const target = document.activeElement || document.body;
    const flags = { ctrlKey: held.some((one) => one === "control" || one === "ctrl"), altKey: held.includes("alt"), shiftKey: held.includes("shift"), metaKey: held.includes("meta") };
    const tell = (type) => target.dispatchEvent(new KeyboardEvent(type, { key: name, bubbles: true, cancelable: true, composed: true, ...flags }));
    const answer = { pressed: true, modifiers: modifiers || [] };
    return settled(() => {
      const goesOn = tell("keydown");
      if (goesOn && !flags.ctrlKey && !flags.altKey && !flags.metaKey) {
        if (name === "Enter") {
          if (target.matches("button, a[href], summary, input[type=submit], input[type=button], input[type=image]")) target.click();
          else if (target.tagName === "TEXTAREA") insert({ ref: refOf(target), text: "\n", mode: "append" });
          else if (target.tagName === "INPUT" && target.form) target.form.requestSubmit(target.form.querySelector("[type=submit], button:not([type])") || undefined);
        } else if (name === " " && target.matches("button, summary, input[type=checkbox], input[type=radio], input[type=submit]")) {
          target.click();
        } else if (name === "Tab") {
          const reachable = select("a[href], button, input, select, textarea, [tabindex]").filter((one) => one.tabIndex >= 0 && !one.disabled && isVisible(one));
          const next = reachable[reachable.indexOf(target) + (flags.shiftKey ? -1 : 1)];
          if (next) next.focus();
        } else if (name === "Backspace" && isField(target)) {
          insert({ ref: refOf(target), text: target.value.slice(0, -1), mode: "replace" });
        } else if (name.length === 1 && (isField(target) || target.isContentEditable)) {
          insert({ ref: refOf(target), text: name, mode: "append" });
        }
      }
      tell("keyup");
    }, answer);
  };

  const perform = ({ primitive, arguments: given }) => {
    switch (primitive) {
      case "pointer.move": {
        const { element, ...at } = reveal(given);
        for (const type of ["pointerover", "mouseover", "pointermove", "mousemove"]) mouse(element, type, at);
        return { x: given.x, y: given.y };
      }
      case "pointer.click": {
        const { element, ...at } = reveal(given);
        if ((given.button || "left") !== "left") {
          mouse(element, given.button === "right" ? "contextmenu" : "auxclick", at);
          return { clicked: true };
        }
        return settled(() => click(element, at), { clicked: true });
      }
      case "pointer.double_click": {
        const { element, ...at } = reveal(given);
        return settled(() => {
          click(element, at);
          click(element, at, 2);
          mouse(element, "dblclick", at, 2);
        }, { double_clicked: true });
      }
      case "viewport.scroll": {
        const moved = given.ref ? elementAt(given.ref) : document.scrollingElement || document.documentElement;
        moved.scrollBy({ left: given.delta_x || 0, top: given.delta_y || 0, behavior: "instant" });
        return { scroll_x: moved.scrollLeft, scroll_y: moved.scrollTop };
      }
      case "keyboard.press":
        return press(given);
      case "browser.navigate": {
        const goal = given.reload ? new URL(location.href) : new URL(String(given.url), document.baseURI);
        if (goal.origin !== location.origin) throw new Failure("permission_denied", "Only pages of this site can be opened.");
        const [before, after] = [location.href.split("#")[0], goal.href.split("#")[0]];
        if (given.reload) location.reload();
        else location.assign(goal.href);
        if (!given.reload && before === after && goal.hash) return { url: location.href, title: document.title };
        return new Promise((resolve) => setTimeout(() => resolve({ url: location.href, title: document.title }), NAVIGATION_MS));
      }
      case "page.fetch": {
        const goal = new URL(String(given.url), document.baseURI);
        if (goal.origin !== location.origin) throw new Failure("permission_denied", "Only addresses of this site are fetched.");
        return fetch(goal, { credentials: "same-origin" }).then(
          async (answer) => {
            const type = answer.headers.get("content-type") || "";
            const bytes = await answer.arrayBuffer();
            let decoder = new TextDecoder();
            try {
              decoder = new TextDecoder((/;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type) || [])[1] || "utf-8");
            } catch { /* no such charset */ }
            const text = decoder.decode(bytes);
            return { url: answer.url, status: answer.status, content_type: type, body: text.slice(0, MAX_HTML), truncated: text.length > MAX_HTML };
          },
          (error) => { throw new Failure("navigation_failed", `It cannot be fetched: ${error.message}`); },
        );
      }
      default:
        throw new Failure("capability_unavailable", `${primitive} cannot be carried out by a page.`, { capability: primitive, host: "page" });
    }
  };

  // --- The page: projections ---

  const extract = ({ extracts }) => {
    const counts = {};
    const missing = [];
    const matches = (rule, root) => {
      if (rule.selector) return select(rule.selector, root);
      if (!rule.xpath) return [root];
      const found = document.evaluate(rule.xpath, root, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
      return Array.from({ length: Math.min(found.snapshotLength, MAX_FOUND) }, (_, at) => found.snapshotItem(at)).filter((one) => one.nodeType === Node.ELEMENT_NODE);
    };
    const valueAt = (rule, element) => {
      let value;
      if (typeof rule.attribute === "string") value = element.getAttribute(rule.attribute);
      else if (rule.property === undefined || rule.property === "innerText") value = textOf(element);
      else if (rule.property === "textContent") value = element.textContent;
      else if (rule.property === "value") value = "value" in element && element.tagName !== "METER" ? String(element.value) : null;
      else if (rule.property === "checked") value = ["checkbox", "radio"].includes(element.type) ? element.checked : null;
      else if (rule.property === "ariaLabel") value = element.getAttribute("aria-label");
      else if (rule.property === "boundingClientRect") {
        const box = element.getBoundingClientRect();
        value = { x: box.x, y: box.y, width: box.width, height: box.height, top: box.top, left: box.left, right: box.right, bottom: box.bottom };
      } else value = null;
      return typeof value === "string" && rule.trim === true ? value.trim() : value;
    };
    const readFields = (rules, element, path) =>
      Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, read(rule || {}, element, `${path}.${name}`)]));
    let left = MAX_VALUES;
    const read = (rule, element, path) => {
      const found = matches(rule, element);
      left -= 1 + found.length;
      if (left < 0) throw new Failure("invalid_result", `The records have more than ${MAX_VALUES} values. Narrow the selectors.`);
      if (rule.many === true) {
        counts[path] = found.length;
        if (rule.fields) return found.map((one, at) => readFields(rule.fields, one, `${path}.${at}`));
        const values = found.map((one) => valueAt(rule, one)).filter((one) => one !== null);
        if (!values.length && rule.required === true) missing.push(path);
        return values;
      }
      let target = found[0] || null;
      if (target && rule.closest) target = target.closest(rule.closest);
      if (target && rule.fields) {
        counts[path] = found.length;
        return readFields(rule.fields, target, `${path}.0`);
      }
      const value = target ? valueAt(rule, target) : null;
      if ((value === null || value === "") && rule.required === true) missing.push(path);
      return value === null ? (rule.default === undefined ? null : rule.default) : value;
    };
    const records = {};
    for (const one of extracts) {
      const id = String(one.id);
      const whole = one.selector && !String(one.selector).includes(":scope"); // which may mean the body too
      const found = matches(one, whole ? document : document.body).slice(0, MAX_FOUND);
      counts[id] = found.length;
      const values = found.map((element, at) => (one.fields ? readFields(one.fields, element, `${id}.${at}`) : textOf(element)));
      records[id] = one.many === false ? (values.length ? values[0] : null) : values;
    }
    return { records, selector_counts: counts, missing };
  };

  // --- The page: events and affordances ---

  const LISTENING = "agents.listening";
  const kept = (name, otherwise) => {
    try {
      return JSON.parse(sessionStorage.getItem(name)) || otherwise;
    } catch {
      return otherwise;
    }
  };
  const listening = new Set();
  let events = [];
  let tellEvents = () => {};

  const listen = ({ events: names }) => {
    for (const name of names) {
      if (listening.has(name)) continue;
      listening.add(name);
      sessionStorage.setItem(LISTENING, JSON.stringify([...listening]));
      document.addEventListener(name, (event) => {
        const refs = [];
        for (let node = event.target; node && node !== document; node = node.parentNode) if (node.nodeType === 1) refs.push(refOf(node));
        let detail = null;
        try {
          detail = JSON.parse(JSON.stringify(event.detail === undefined ? null : event.detail));
        } catch {
          detail = null;
        }
        events.push({ event: name, detail, url: location.href, refs: refs.filter(Boolean) });
        if (events.length > 1000) events.shift();
        tellEvents();
      }, true);
    }
    return null;
  };

  const affordances = () => select("[data-agents-attachment]");

  const attach = ({ id, ref, affordance }) => {
    const anchor = elementAt(ref);
    for (const one of affordances()) if (one.dataset.agentsAttachment === id) one.remove();
    const made = document.createElement(affordance.opens ? "button" : "span");
    made.dataset.agentsAttachment = id;
    made.textContent = String(affordance.label || "").slice(0, 200);
    if (affordance.title) made.title = String(affordance.title).slice(0, 200);
    const places = ["beforebegin", "afterbegin", "beforeend", "afterend"];
    anchor.insertAdjacentElement(places.includes(affordance.placement) ? affordance.placement : "afterend", made);
    return null;
  };

  // --- Actions, with the page's own session ---

  const RECEIPTS = "agents.receipts";
  const invokeAgent = async (given) => {
    if (!SITE.invoke) throw new Failure("missing_handler", "The site has no WoA door, at which pages call its actions.", { host: "page" });
    const receipts = kept(RECEIPTS, {});
    const body = { agent: given.agent_id, input: given.input || {} };
    if (given.operation) body.operation = given.operation;
    if (given.confirmation) body.confirmation = given.confirmation;
    if (given.idempotency_key) body.idempotency_key = given.idempotency_key;
    const shown = [...(given.receipts || []), ...Object.values(receipts)];
    if (shown.length) body.receipts = shown;
    const address = SITE.invoke.replace("{agent_id}", encodeURIComponent(given.agent_id));
    const answer = await fetch(address, { method: "POST", credentials: "same-origin", headers: { "content-type": "application/json", accept: "application/json" }, body: JSON.stringify(body) });
    const receipt = answer.headers.get("awp-receipt");
    if (receipt) sessionStorage.setItem(RECEIPTS, JSON.stringify({ ...receipts, [given.agent_id]: receipt }));
    const text = await answer.text();
    let told = text;
    try {
      told = JSON.parse(text);
    } catch {
      told = text;
    }
    return { status: answer.status, body: told };
  };

  const invoke = async ({ handler, arguments: given }) => {
    if (handler === "agents.invoke") return invokeAgent(given);
    let [owner, found] = [null, window];
    for (const name of handler.split(".")) {
      if (found === null || found === undefined || !Object.prototype.hasOwnProperty.call(found, name)) { found = undefined; break; }
      [owner, found] = [found, found[name]];
    }
    // Only what the page's own scripts have made, and never what a browser has by itself.
    const isNative = typeof found === "function" && /\{\s*\[native code\]\s*\}$/.test(Function.prototype.toString.call(found));
    if (typeof found !== "function" || isNative) throw new Failure("missing_handler", `The page has no function ${handler}.`, { host: "page" });
    const output = await found.call(owner, given);
    return output === undefined ? null : JSON.parse(JSON.stringify(output));
  };

  const METHODS = {
    title: () => document.title,
    html: () => document.documentElement.outerHTML.slice(0, MAX_HTML),
    find: ({ css, within, text_contains: part }) => {
      const root = within ? elementAt(within) : document.body;
      const found = css === null || css === undefined ? select("*", root) : select(css, root);
      const all = css && !within && document.body.matches(css) ? [document.body, ...found] : found;
      const hinted = part ? all.filter((one) => collapse(one.textContent).includes(collapse(part)) || textOf(one).includes(collapse(part))) : all;
      return hinted.slice(0, MAX_FOUND).map(describe);
    },
    closest: ({ ref, css }) => {
      let found;
      try {
        found = elementAt(ref).closest(css);
      } catch (error) {
        if (error instanceof Failure) throw error;
        throw new Failure("invalid_selector", `"${css}" cannot be used as a selector.`, { selector: css });
      }
      return found ? describe(found) : null;
    },
    reveal: (point) => {
      const { element, x, y } = reveal(point);
      return { x, y, link: Boolean(element.closest("a[href], area[href]")) };
    },
    insert, perform, extract, listen, attach, invoke,
    detach: ({ id }) => { for (const one of affordances()) if (one.dataset.agentsAttachment === id) one.remove(); return null; },
    attached: () => affordances().map((one) => one.dataset.agentsAttachment),
    takeEvents: () => { const taken = events; events = []; return taken; },
  };

  const run = async (method, given) => {
    try {
      if (!Object.prototype.hasOwnProperty.call(METHODS, method)) throw new Failure("capability_unavailable", `There is no method ${method}.`);
      const value = await METHODS[method](given || {});
      return { ok: true, value, url: location.href, document: DOCUMENT };
    } catch (error) {
      const known = error instanceof Failure;
      const told = { code: known ? error.code : "handler_failed", message: String((error && error.message) || error), evidence: known ? error.evidence : {} };
      return { ok: false, error: told, url: location.href, document: DOCUMENT };
    }
  };

  // --- Pairing ---

  const PAIRING = "agents.pairing";
  const ANSWERED = "agents.answered";
  const HEARTBEAT_MS = 20000;
  const secret = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(24)))).replace(/\+/g, "-").replace(/\//g, "_");
  let socket = null;
  let beat = 0;
  let wait = 500;
  let badge = null;

  const style = (element, rules) => { for (const [name, value] of Object.entries(rules)) element.style.setProperty(name, value); };

  const showBadge = (pairing, state) => {
    if (!badge) {
      badge = document.createElement("div");
      badge.setAttribute("role", "status");
      badge.dataset.agentsBadge = "";
      style(badge, { position: "fixed", bottom: "12px", right: "12px", "z-index": "2147483647", padding: "8px 12px", background: "#14213d", color: "#fff", font: "14px/1.4 system-ui, sans-serif", "border-radius": "6px", "max-width": "24em", "overflow-wrap": "anywhere" });
      const words = document.createElement("span");
      const end = document.createElement("button");
      end.type = "button";
      end.textContent = "Stop";
      style(end, { "margin-left": "10px", font: "inherit" });
      end.addEventListener("click", () => unpair());
      badge.append(words, end);
    }
    if (!badge.isConnected) document.documentElement.append(badge);
    badge.firstChild.textContent = `${state}. Code for your agent: ${pairing.authorization_id}`;
  };

  const send = (item) => { if (socket && socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(item)); };

  const ready = (pairing) => ({
    type: "runtime_ready",
    runtime_id: pairing.runtime_id,
    runtime_key: pairing.runtime_key,
    authorization_id: pairing.authorization_id,
    url: location.href,
    title: document.title.slice(0, 1000),
    host: "page",
    manifest: { protocol: "actions.json", version: 1 },
    capabilities: ["page.driver"],
  });

  const take = async (pairing, item) => {
    if (item.type === "action_error" && item.runtime_id === pairing.runtime_id && item.error && item.error.code === "transport_failed" && !item.call_id) {
      unpair(false); // a copy of this tab has taken its place
      return;
    }
    if (item.type !== "action_call" || typeof item.name !== "string") return;
    const answered = kept(ANSWERED, []);
    if (answered.includes(item.call_id)) return; // what was done is never done again
    sessionStorage.setItem(ANSWERED, JSON.stringify([...answered, item.call_id].slice(-50)));
    if (!item.name.startsWith("page.")) {
      const words = "This page carries out single steps only.";
      send({ type: "action_error", call_id: item.call_id, runtime_id: pairing.runtime_id, error: { code: "capability_unavailable", message: words, evidence: { capability: item.name, host: "page" } } });
      return;
    }
    const output = await run(item.name.slice("page.".length), item.arguments);
    send({ type: "action_call_output", call_id: item.call_id, runtime_id: pairing.runtime_id, output });
  };

  const connect = (pairing) => {
    const address = new URL(SITE.bridge, location.href);
    address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
    const opened = new WebSocket(address.href);
    socket = opened;
    showBadge(pairing, "Pairing this tab");
    opened.addEventListener("open", () => {
      wait = 500;
      send(ready(pairing));
      showBadge(pairing, "An agent may use this tab");
      clearInterval(beat);
      beat = setInterval(() => send({ type: "runtime_status", runtime_id: pairing.runtime_id, url: location.href }), HEARTBEAT_MS);
    });
    opened.addEventListener("message", (event) => {
      let item = null;
      try {
        item = JSON.parse(event.data);
      } catch {
        return;
      }
      if (item && typeof item === "object") take(pairing, item);
    });
    opened.addEventListener("close", () => {
      clearInterval(beat);
      if (socket !== opened || leaving || !kept(PAIRING, null)) return;
      showBadge(pairing, "The connection is lost");
      setTimeout(() => { if (socket === opened && kept(PAIRING, null)) connect(pairing); }, wait);
      wait = Math.min(wait * 2, 15000);
    });
  };

  tellEvents = () => {
    const pairing = kept(PAIRING, null);
    if (pairing) send({ type: "runtime_status", runtime_id: pairing.runtime_id, url: location.href, events: events.length });
  };

  const pair = () => {
    let pairing = kept(PAIRING, null);
    if (!pairing) {
      // Paired by a visitor, and by nobody else: a click or a key of theirs is what this comes from.
      if (navigator.userActivation && !navigator.userActivation.isActive) throw new Error("Only a visitor can pair a tab.");
      pairing = { runtime_id: `tab-${secret().slice(0, 12)}`, runtime_key: secret(), authorization_id: secret() };
      sessionStorage.setItem(PAIRING, JSON.stringify(pairing));
    }
    if (!socket || socket.readyState > WebSocket.OPEN) connect(pairing);
    return pairing.authorization_id;
  };

  const unpair = (forget = true) => {
    const pairing = kept(PAIRING, null);
    for (const name of [PAIRING, RECEIPTS, ANSWERED, LISTENING]) sessionStorage.removeItem(name);
    if (socket) {
      // Without its code and key the runtime is nobody's to find, and does not come back.
      if (pairing && forget) send({ type: "runtime_ready", runtime_id: pairing.runtime_id, url: location.href });
      socket.close(1000);
      socket = null;
    }
    clearInterval(beat);
    if (badge) badge.remove();
  };

  Object.defineProperty(window, "agentsBridge", { value: Object.freeze({ pair, unpair, run, get isPaired() { return kept(PAIRING, null) !== null; } }) });

  // A page is left for another one, or with its tab. The bridge waits for the next page; for a tab that is closed it
  // need not. Navigations that the address bar begins look like closing: a call under way then fails at once as well.
  let wentOn = -Infinity;
  if (window.navigation) {
    navigation.addEventListener("navigate", (event) => {
      if (!event.hashChange && event.downloadRequest === null) wentOn = performance.now();
    });
    addEventListener("pagehide", (event) => {
      const pairing = kept(PAIRING, null);
      if (!pairing || event.persisted || performance.now() - wentOn < NAVIGATION_MS) return;
      send({ type: "runtime_status", runtime_id: pairing.runtime_id, url: location.href, closing: true });
    });
  }

  const start = () => {
    document.addEventListener("click", (event) => {
      if (event.isTrusted && event.target.closest && event.target.closest("[data-agents-pair]")) pair();
    });
    listen({ events: kept(LISTENING, []) });
    if (SITE.bridge && kept(PAIRING, null)) pair();
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
