// The text beside a point: what it says, when, and in which conversation.

import { shownTime } from "../times.js";

const GAP = 14;

export class Tooltip {
  constructor(panel) {
    this.element = document.createElement("div");
    this.element.className = "tooltip";
    this.element.setAttribute("role", "status");
    this.element.hidden = true;
    this.text = this.element.appendChild(document.createElement("div"));
    this.more = this.element.appendChild(document.createElement("small"));
    panel.append(this.element);
  }

  show(cloud, row, left, top) {
    this.text.textContent = cloud.text[row];
    this.more.textContent = [timeOf(cloud, row), conversationOf(cloud, row), typeOf(cloud, row)].filter(Boolean).join(" · ");
    this.element.hidden = false;
    const { offsetWidth: width, offsetHeight: height, offsetParent: parent } = this.element;
    const beside = left + GAP + width > parent.clientWidth ? Math.max(0, left - GAP - width) : left + GAP;
    const below = top + GAP + height > parent.clientHeight ? Math.max(0, top - GAP - height) : top + GAP;
    this.element.style.left = `${beside}px`;
    this.element.style.top = `${below}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}

export function timeOf(cloud, row) {
  return shownTime(new Date(cloud.at[row] * 1000));
}

export function conversationOf(cloud, row) {
  return cloud.conversation.names[cloud.conversation.of[row]];
}

export function typeOf(cloud, row) {
  return cloud.type.names[cloud.type.of[row]];
}
