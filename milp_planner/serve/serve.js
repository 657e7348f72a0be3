"use strict";
const by = (id) => document.getElementById(id);
let token = sessionStorage.getItem("token") || "";
let job = null, first = null, base = null, wait = null;

async function call(path, options = {}) {
  const headers = { ...(options.headers || {}) };
  if (token) headers.Authorization = `Bearer ${token}`;
  const answer = await fetch(path, { ...options, headers });
  if (answer.status === 401) by("token-row").hidden = false;
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({ error: answer.statusText }));
    throw new Error(said.error);
  }
  return answer;
}

function say(text, failed = false) {
  by("status").textContent = text;
  by("status").className = failed ? "failed" : "";
}

function time(picoseconds) {
  if (picoseconds === null || picoseconds === undefined) return "–";
  for (const [unit, size] of [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]])
    if (picoseconds >= size) return `${(picoseconds / size).toPrecision(4)} ${unit}`;
  return `${picoseconds} ps`;
}

function bytes(amount) {
  for (const [unit, size] of [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20]])
    if (amount >= size) return `${(amount / size).toPrecision(3)} ${unit}`;
  return `${amount} B`;
}

const gap = (plan, bound) =>
  plan && bound !== null && bound !== undefined ? `${((100 * (plan - bound)) / plan).toPrecision(2)}%` : "–";

async function choices() {
  const found = await (await call("v1/shipped")).json();
  for (const [kind, names] of [["model", found.models], ["cluster", found.clusters]]) {
    const select = by(`${kind}-name`);
    select.replaceChildren(...[...names, "(pasted)"].map((name) => new Option(name)));
    select.value = kind === "model" ? "kuairand-27k" : "1xa10";
    if (!select.value) select.selectedIndex = 0;
    await load(kind);
    select.onchange = () => load(kind).catch((error) => say(error.message, true));
    by(kind).oninput = () => { select.value = "(pasted)"; forget(); };
  }
}

async function load(kind) {
  const name = by(`${kind}-name`).value;
  forget();
  if (name === "(pasted)") { by(kind).value = ""; by(kind).closest("details").open = true; return; }
  by(kind).value = await (await call(`v1/shipped/${kind}s/${encodeURIComponent(name)}`)).text();
}

function forget() {
  first = base = null;
  by("what-if").disabled = true;
}

function question() {
  const of = (kind) => (by(`${kind}-name`).value === "(pasted)" ? by(kind).value : by(`${kind}-name`).value);
  return { model: of("model"), cluster: of("cluster"), objective: by("objective").value,
           time_limit: Number(by("seconds").value), gap: Number(by("gap").value) / 100 };
}

async function ask(body) {
  if (job) await stop();
  say("requesting …");
  const answer = await call("v1/jobs", {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  const mine = (job = (await answer.json()).id);
  by("stop").disabled = false;
  const ended = await follow(mine);
  if (job === mine) { job = null; by("stop").disabled = true; }
  return ended && mine;
}

async function stop() {
  const mine = job;
  job = null;
  by("stop").disabled = true;
  if (mine) await call(`v1/jobs/${mine}`, { method: "DELETE" }).catch(() => {});
}

async function follow(id) {
  const reader = (await call(`v1/jobs/${id}/events`)).body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "", good = false;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return good;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const line = part.split("\n").find((each) => each.startsWith("data: "));
      if (line) good = (await show(id, JSON.parse(line.slice(6)))) || good;
    }
  }
}

async function show(id, event) {
  if (event.event === "queued" || event.event === "running") say(`${event.event} …`);
  if (event.event === "progress") {
    say(`${event.seconds.toFixed(1)} s · plan ${time(event.objective)} · bound ${time(event.bound)} · gap ${gap(event.objective, event.bound)} · certified gap ${gap(event.objective, event.certified_bound)}`);
    chart(event.chart);
  }
  if (event.event === "failed") say(event.message, true);
  if (event.event !== "done" && event.event !== "cancelled") return false;
  if (!event.status) { say("stopped before a plan was found"); return false; }
  say(`${event.standing} · ${time(event.objective)} · certified ≥ ${time(event.certified_bound)} · ${event.seconds.toFixed(1)} s${event.cached ? ", known from before" : ""}`);
  const picture = await (await call(`v1/jobs/${id}/picture.json`)).json();
  draw(picture);
  downloads(id, event.exports);
  return event.objective !== null;
}

function element(name, text = "", style = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (style) made.className = style;
  return made;
}

function picture(svg) { // drawings come from this service; as separate documents they run no scripts
  return document.importNode(new DOMParser().parseFromString(svg, "text/html").querySelector("svg"), true);
}

function chart(svg) {
  by("chart").hidden = by("chart-key").hidden = !svg;
  by("chart").replaceChildren(...(svg ? [picture(svg)] : []));
}

function colours(keys) {
  const list = element("ul", "", "key");
  list.append(...keys.map((key) => {
    const item = element("li"), box = '<svg viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10"/></svg>';
    item.append(picture(box), key.text);
    item.querySelector("rect").setAttribute("class", key.style);
    return item;
  }));
  return list;
}

function draw(found) {
  by("strip").replaceChildren(...found.strip.map((fact) => {
    const box = element("div"), value = element("dd", fact.value, fact.style);
    if (fact.note) value.append(element("small", fact.note));
    box.append(element("dt", fact.label), value);
    return box;
  }));
  chart(found.chart);
  by("drawings").replaceChildren(...found.sections.map((section) => {
    const part = element("section");
    part.append(element("h2", section.title), colours(section.key));
    for (const drawing of section.drawings) {
      const figure = element("figure");
      figure.append(element("h3", drawing.heading), picture(drawing.svg), element("figcaption", drawing.note, "soft"));
      part.append(figure);
    }
    return part;
  }));
}

function downloads(id, exports) {
  const names = ["plan.json", "report.html", ...exports.map((name) => `${name}.txt`)];
  by("downloads").hidden = false;
  by("downloads").replaceChildren("Download: ", ...names.map((name) => {
    const link = element("a", name);
    link.href = `v1/jobs/${id}/${name}`;
    link.onclick = async (click) => { // a link carries no token
      click.preventDefault();
      const blob = await (await call(link.href)).blob();
      const made = element("a");
      made.href = URL.createObjectURL(blob);
      made.download = name;
      made.click();
      setTimeout(() => URL.revokeObjectURL(made.href), 1000);
    };
    return link;
  }));
}

async function begin() {
  forget();
  const id = await ask(question());
  if (!id) return;
  const plan = await (await call(`v1/jobs/${id}/plan.json`)).json();
  if (plan.cluster.encoding) return;
  const machines = plan.cluster.machines;
  base = {
    hbm: Math.min(...machines.flatMap((m) => m.ranks.map((r) => r.hbm))),
    ddr: Math.min(...machines.map((m) => m.ddr)), machines: machines.length, tables: plan.tables.length,
    linked: machines.length > 1 || Boolean(plan.cluster.interconnect && plan.cluster.interconnect.inter_machine),
  };
  first = id;
  by("hbm").value = by("ddr").value = 100;
  by("machines").max = base.linked ? Math.max(4, 2 * base.machines) : base.machines;
  by("machines").disabled = !base.linked;
  by("machines").value = base.machines;
  by("moves").max = base.tables + 1;
  by("moves").value = base.tables + 1;
  const names = plan.tables.map((table) => table.name);
  by("grown").replaceChildren(new Option("all tables", "*"), ...names.map((name) => new Option(name)));
  by("growth").value = 0;
  labels();
  by("what-if").disabled = false;
}

function labels() {
  const part = (id) => Math.round((base[id] * Number(by(id).value)) / 100);
  by("hbm-text").textContent = bytes(part("hbm"));
  by("ddr-text").textContent = bytes(part("ddr"));
  by("machines-text").textContent = by("machines").value;
  const moves = Number(by("moves").value);
  by("moves-text").textContent = moves > base.tables ? "all" : String(moves);
  const growth = Number(by("growth").value);
  by("growth-text").textContent = `${growth}%`;
  return { hbm: part("hbm"), ddr: part("ddr"), machines: Number(by("machines").value), moves, growth };
}

async function again() {
  const wanted = labels(), body = question();
  if (wanted.hbm !== base.hbm) body.hbm = wanted.hbm;
  if (wanted.ddr !== base.ddr) body.ddr = wanted.ddr;
  if (wanted.machines !== base.machines) body.machines = wanted.machines;
  if (wanted.growth) body.growth = { [by("grown").value]: wanted.growth };
  if (body.ddr === 0) body.ddr = 1024;
  if (wanted.moves <= base.tables) Object.assign(body, { start: first, max_moved: wanted.moves });
  await ask(body);
}

by("ask").onsubmit = (event) => {
  event.preventDefault();
  begin().catch((error) => say(error.message, true));
};
by("stop").onclick = async () => { const mine = job; if (mine) { by("stop").disabled = true; await call(`v1/jobs/${mine}`, { method: "DELETE" }); } };
function soon() {
  labels();
  clearTimeout(wait);
  wait = setTimeout(() => again().catch((error) => say(error.message, true)), 400);
}
for (const id of ["hbm", "ddr", "machines", "moves", "growth"]) by(id).oninput = soon;
by("grown").onchange = () => { if (Number(by("growth").value)) soon(); };
by("token").onchange = () => {
  token = by("token").value;
  sessionStorage.setItem("token", token);
  choices().then(() => { say(""); by("token-row").hidden = true; }).catch((error) => say(error.message, true));
};
choices().catch((error) => say(error.message, true));
