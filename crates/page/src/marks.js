// Shows a mark's values at the pointer, and with the arrow keys in a figure that has the focus;
// saves a figure as a file. Without it, browsers show the titles of marks themselves.
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("role", "status");
document.body.append(tip);
const hide = () => { tip.hidden = true; };
const show = (mark) => {
  tip.textContent = mark.getAttribute("aria-label");
  tip.hidden = false;
  const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const middle = at.left + at.width / 2 - own.width / 2;
  const left = Math.max(4, Math.min(middle, document.documentElement.clientWidth - own.width - 4));
  const above = at.top - own.height - 6;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(above < 0 ? at.bottom + 6 : above) + scrollY}px`;
};
addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

const svgOf = (file) => new Blob([file], { type: "image/svg+xml" });
// Twice the size of the figure, on white paper.
const pngOf = async (file) => {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(file)}`;
  await image.decode();
  const paper = document.createElement("canvas");
  paper.width = 2 * image.width;
  paper.height = 2 * image.height;
  const pen = paper.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, paper.width, paper.height);
  pen.drawImage(image, 0, 0, paper.width, paper.height);
  return new Promise((done) => paper.toBlob(done, "image/png"));
};

for (const drawing of document.querySelectorAll(".drawing")) {
  const svg = drawing.querySelector("svg"), marks = [...svg.querySelectorAll(".mark")];
  const file = new XMLSerializer().serializeToString(svg);
  const title = svg.querySelector("title");
  svg.setAttribute("aria-label", title.textContent);
  title.remove();
  if (marks.length) svg.setAttribute("role", "group");

  marks.forEach((mark, place) => {
    const said = mark.querySelector("title");
    mark.setAttribute("role", mark.hasAttribute("href") ? "link" : "img");
    mark.setAttribute("aria-label", said.textContent);
    said.remove();
    // One stop of the Tab key for each figure.
    mark.setAttribute("tabindex", place ? -1 : 0);
    mark.addEventListener("pointerenter", () => show(mark));
    mark.addEventListener("pointerleave", hide);
    mark.addEventListener("focus", () => show(mark));
    mark.addEventListener("blur", hide);
    mark.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const next = step && marks[place + step];
      if (!next) return;
      event.preventDefault();
      mark.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });
  });

  const saved = document.createElement("div");
  saved.className = "save";
  for (const [kind, made] of Object.entries({ SVG: svgOf, PNG: pngOf })) {
    const save = document.createElement("button");
    save.type = "button";
    save.textContent = kind;
    save.setAttribute("aria-label", `Save as ${kind}: ${svg.getAttribute("aria-label")}`);
    save.addEventListener("click", async () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(await made(file));
      link.download = `${drawing.dataset.file}.${kind.toLowerCase()}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    saved.append(save);
  }
  drawing.append(saved);
}
