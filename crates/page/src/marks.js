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
const dataOf = (file) => `data:image/svg+xml,${encodeURIComponent(file)}`;
// Pictures have 300 dots an inch, of which a page's pixel is a 96th.
const DPI = 300, SCALE = DPI / 96;
const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  for (let bit = 0; bit < 8; bit += 1) byte = byte & 1 ? 0xedb88320 ^ (byte >>> 1) : byte >>> 1;
  return byte;
});
// PNG's chunk that says how many pixels a metre has, so that a picture is printed at the figure's size.
const resolution = () => {
  const chunk = new DataView(new ArrayBuffer(21));
  chunk.setUint32(0, 9);
  [..."pHYs"].forEach((letter, place) => chunk.setUint8(4 + place, letter.charCodeAt(0)));
  for (const at of [8, 12]) chunk.setUint32(at, Math.round(DPI / 0.0254));
  chunk.setUint8(16, 1);
  let sum = 0xffffffff;
  for (let at = 4; at < 17; at += 1) sum = CRC[(sum ^ chunk.getUint8(at)) & 0xff] ^ (sum >>> 8);
  chunk.setUint32(17, ~sum);
  return chunk;
};
// On white paper.
const pngOf = async (file) => {
  const image = new Image();
  image.src = dataOf(file);
  await image.decode();
  const paper = document.createElement("canvas");
  paper.width = Math.round(SCALE * image.width);
  paper.height = Math.round(SCALE * image.height);
  const pen = paper.getContext("2d");
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, paper.width, paper.height);
  pen.drawImage(image, 0, 0, paper.width, paper.height);
  const png = await new Promise((done) => paper.toBlob(done, "image/png"));
  // After the signature and the chunk with the size, which come first.
  return new Blob([png.slice(0, 33), resolution(), png.slice(33)], { type: "image/png" });
};

// Makes one figure all of what is printed, on a page of its size; answers how to undo that.
const printOnly = (file, { width, height }, name) => {
  const title = document.title, sheet = document.createElement("style"), only = new Image();
  sheet.textContent = `@media print { @page { size: ${width}px ${Math.ceil(height)}px; margin: 0; }
    body { margin: 0; } body > :not(.only) { display: none; } }`;
  only.className = "only";
  only.alt = "";
  only.src = dataOf(file);
  document.head.append(sheet);
  document.body.append(only);
  // Browsers propose it as the file's name.
  document.title = name;
  return { ready: only.decode(), undo: () => { sheet.remove(); only.remove(); document.title = title; } };
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

  const { file: name } = drawing.dataset, size = svg.viewBox.baseVal;
  const print = document.createElement("button");
  print.type = "button";
  print.textContent = "PDF";
  print.setAttribute("aria-label", `Print alone, to save as PDF: ${svg.getAttribute("aria-label")}`);
  print.addEventListener("click", async () => {
    const { ready, undo } = printOnly(file, size, name);
    await ready;
    addEventListener("afterprint", undo, { once: true });
    window.print();
  });
  saved.append(print);
  drawing.append(saved);
  // For `chromium --headless --print-to-pdf 'report.html?figure=NAME'`.
  if (new URLSearchParams(location.search).get("figure") === name) printOnly(file, size, name);
}
