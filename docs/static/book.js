// Conveniences; every page can be read without them.

// A button beside each listing copies its code: no line numbers, no numbers of notes, no prompts.
for (const block of document.querySelectorAll("div.highlight")) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = block.querySelector("pre").cloneNode(true);
    const console = code.querySelector(".gp") !== null;
    for (const extra of code.querySelectorAll(".linenos, a.note, .gp")) extra.remove();
    if (console) for (const output of code.querySelectorAll(".go")) output.remove();
    const text = code.textContent.replace(/ +$/gm, "").trim() + "\n";
    button.dataset.copied = text;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}

// The pictures of a program are shown one at a time. Without this script they are below one another.
for (const strip of document.querySelectorAll("div.steps")) {
  const all = [...strip.querySelectorAll(".step")];
  const bar = document.createElement("div");
  const [back, next] = ["Back", "Next line"].map((words) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    return button;
  });
  const where = document.createElement("span");
  let at = 0;
  const go = (by) => {
    at += by;
    all.forEach((step, n) => (step.hidden = n !== at));
    where.textContent = `${at + 1} of ${all.length}`;
    back.disabled = at === 0;
    next.disabled = at === all.length - 1;
  };
  back.addEventListener("click", () => go(-1));
  next.addEventListener("click", () => go(1));
  bar.className = "buttons";
  bar.append(back, next, where);
  strip.prepend(bar);
  go(0);
}

// The ticks of a checklist stay in this browser.
for (const box of document.querySelectorAll("input.task-list-item-checkbox")) {
  const words = box.closest("li").innerText.trim();
  const name = `torch_openreg: ${words}`;
  box.disabled = false;
  box.setAttribute("aria-label", words);
  box.checked = localStorage.getItem(name) === "done";
  box.addEventListener("change", () => {
    if (box.checked) localStorage.setItem(name, "done");
    else localStorage.removeItem(name);
  });
}

// The definition of a term, and a note, are shown below the link that the mouse or the keyboard is on. Without this
// script the browser shows the title, on hover only.
const shown = document.createElement("div");
shown.id = "shown";
shown.setAttribute("role", "tooltip");
document.body.append(shown);

function hide() {
  shown.classList.remove("open");
}

function show(link) {
  shown.textContent = link.dataset.text;
  shown.classList.add("open");
  const at = link.getBoundingClientRect();
  const right = document.documentElement.clientWidth - shown.offsetWidth - 8;
  const below = at.bottom + shown.offsetHeight + 8 < window.innerHeight;
  shown.style.left = `${Math.max(8, Math.min(at.left, right))}px`;
  shown.style.top = `${below ? at.bottom : at.top - shown.offsetHeight}px`;
}

for (const link of document.querySelectorAll("a.term[title], a.note[title]")) {
  link.dataset.text = link.title;
  link.removeAttribute("title");
  link.setAttribute("aria-describedby", shown.id);
  link.addEventListener("mouseenter", () => show(link));
  link.addEventListener("focus", () => show(link));
  link.addEventListener("blur", hide);
  // The mouse may move onto the text.
  link.addEventListener("mouseleave", (event) => event.relatedTarget === shown || hide());
}
shown.addEventListener("mouseleave", hide);
addEventListener("scroll", hide, { passive: true });
addEventListener("keydown", (event) => event.key === "Escape" && hide());
