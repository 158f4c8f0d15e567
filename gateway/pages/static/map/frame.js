// The elements of a panel: its heading, zoom buttons and canvas. No behaviour but the buttons'.

const BUTTONS = [["+", "Zoom in", 1.5], ["−", "Zoom out", 1 / 1.5], ["Show all", "Show all", 0]];

export function buildFrame(cloud, number, zoom) {
  const element = make("section", "cloud");
  const header = element.appendChild(make("header"));
  const title = header.appendChild(make("h2"));
  const name = title.appendChild(make("span", `mode ${cloud.hue}`, cloud.mode));
  name.id = `cloud-${number}`;
  element.setAttribute("aria-labelledby", name.id);
  const count = header.appendChild(make("small"));
  count.id = `cloud-${number}-count`;
  const buttons = header.appendChild(make("div", "zoom"));
  for (const [text, label, factor] of BUTTONS) {
    const button = buttons.appendChild(make("button", "quiet", text));
    button.type = "button";
    button.setAttribute("aria-label", `${label}: ${cloud.mode}`);
    button.addEventListener("click", () => zoom(factor));
  }
  const canvas = element.appendChild(make("canvas"));
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute("aria-describedby", count.id);
  const empty = element.appendChild(make("p", "empty", "No memory of this mode has a vector yet."));
  return { element, count, canvas, empty };
}

export function describe(frame, cloud) {
  const points = cloud.ids.length === 1 ? "1 memory" : `${cloud.ids.length.toLocaleString("en")} memories`;
  const notes = [points];
  if (!cloud.settled) notes.push("being laid out");
  if (cloud.left_out) notes.push(`${cloud.left_out.toLocaleString("en")} left out`);
  frame.count.textContent = notes.join(" · ");
  frame.canvas.setAttribute("aria-label", `Map of the mode ${cloud.mode}, ${points}. The table below has those in view.`);
  frame.canvas.hidden = !cloud.ids.length;
  frame.empty.hidden = cloud.ids.length > 0;
}

function make(tag, classes = "", text = "") {
  const element = document.createElement(tag);
  element.className = classes;
  element.textContent = text;
  return element;
}
