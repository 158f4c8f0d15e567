// A file that is dropped on a page with a form for files goes into it; an upload shows how far it is. Without scripts the
// form does the same.

const form = document.querySelector("form[data-drop]");
if (form) start();

function start() {
  const input = form.querySelector("input[type=file]");
  const hasFile = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    form.dataset.over = "";
  });
  document.addEventListener("dragleave", (event) => event.relatedTarget || delete form.dataset.over);
  document.addEventListener("drop", (event) => {
    if (!hasFile(event)) return;
    event.preventDefault();
    delete form.dataset.over;
    input.files = event.dataTransfer.files;
    form.requestSubmit();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
}

function send() {
  const progress = form.querySelector("progress"), button = form.querySelector("button");
  const request = new XMLHttpRequest();
  request.upload.addEventListener("progress", (event) => (progress.value = event.total ? event.loaded / event.total : 0));
  request.addEventListener("load", () => {
    const next = request.getResponseHeader("Location");
    if (!next) return refused(request.responseText);
    const isHere = new URL(next, location).href.split("#")[0] === location.href.split("#")[0];
    location.assign(next);
    if (isHere) location.reload();
  });
  request.addEventListener("error", () => refused("The upload was interrupted. Try again."));
  function refused(text) {
    document.getElementById("error").innerHTML = text;
    progress.hidden = true;
    button.disabled = false;
  }
  request.open("POST", form.action);
  // So that the address to go to is in the answer, and is not followed.
  request.setRequestHeader("Accept", "application/json");
  request.send(new FormData(form));
  progress.hidden = false;
  button.disabled = true;
}
