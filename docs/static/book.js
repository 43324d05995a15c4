// Two conveniences; every page can be read without them.

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
