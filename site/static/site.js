// The theme, before anything is drawn; then the search and the list of versions.
const html = document.documentElement, root = html.dataset.root;
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosen;
try { chosen = localStorage.theme; } catch { /* a browser may forbid it */ }
const isDark = () => (chosen ?? (dark.matches ? "dark" : "light")) === "dark";

function paint() {
  html.style.colorScheme = isDark() ? "dark" : "light";
  for (const s of document.querySelectorAll("picture source")) s.media = isDark() ? "all" : "not all"; // README has one, for dark
}
paint();

// find returns the parts that have every word, those with most of them in their titles first.
function find(parts, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const score = p => {
    const heads = `${p.page} ${p.title}`.toLowerCase(), all = `${heads} ${p.words.toLowerCase()}`;
    return words.every(w => all.includes(w)) ? 1 + words.filter(w => heads.includes(w)).length : 0;
  };
  return parts.map(p => [score(p), p]).filter(([n]) => n).sort((a, b) => b[0] - a[0]).map(([, p]) => p);
}

// link shows a part, with the words around the first that was looked for.
function link(p, text) {
  const at = Math.max(0, p.words.toLowerCase().indexOf(text.toLowerCase().split(/\s+/).filter(Boolean)[0]) - 60);
  const a = document.createElement("a"), b = document.createElement("b"), small = document.createElement("small");
  a.href = root + p.url;
  b.textContent = p.page === p.title ? p.page : `${p.page} › ${p.title}`;
  small.textContent = (at ? "…" : "") + p.words.slice(at, at + 180);
  a.append(b, small);
  return a;
}

document.addEventListener("DOMContentLoaded", async () => {
  paint();
  dark.addEventListener("change", paint);
  document.querySelector("#theme").onclick = () => {
    chosen = isDark() ? "light" : "dark";
    paint();
    localStorage.theme = chosen;
  };
  if (matchMedia("(max-width: 760px)").matches) document.querySelector("nav details").open = false;

  const input = document.querySelector("#search"), found = document.querySelector("#found");
  let parts;
  const search = async () => {
    parts ??= fetch(`${root}search.json`).then(r => r.json());
    const hits = find(await parts, input.value).slice(0, 20);
    found.replaceChildren(...hits.map(p => link(p, input.value)));
    if (!hits.length) found.textContent = "Nothing found.";
    found.hidden = !input.value.trim();
  };
  input.oninput = search;
  found.onclick = () => { found.hidden = true; };
  addEventListener("keydown", e => {
    if (e.key === "Escape") found.hidden = true;
    if (e.key === "/" && !e.target.matches("input, select")) { e.preventDefault(); input.focus(); }
    if (e.key === "Enter" && e.target === input) found.querySelector("a")?.click();
  });

  // Beside the folder of this version lies the list of all, where the site is published.
  const answer = await fetch(`${root}../versions.json`).catch(() => null);
  if (!answer?.ok) return;
  const here = new URL(root || ".", location).pathname.split("/").at(-2), select = document.querySelector("#version");
  for (const v of await answer.json()) select.add(new Option(v, v, false, v === here));
  select.onchange = () => { location = `${root}../${select.value}/`; };
  select.hidden = false;
});
