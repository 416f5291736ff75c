// Sends the form of this page as JSON, and shows errors at their fields. Without scripts the browser sends the form itself.
import { retrying } from "../retry.js";

type Problem = { detail: string; errors?: { pointer?: string; detail: string }[] };

const form = document.querySelector("form")!, status = form.querySelector("[role=status]")!, button = form.querySelector("button")!;
const send = retrying(20_000);
const key = crypto.randomUUID(); // the same content with this key makes one response; needs https or localhost

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  button.disabled = true; // the fields stay as they are until the form was sent
  clear();
  status.textContent = "Sending…";
  try {
    const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
    const reply = await send(new Request(form.action, { method: "POST", headers, body: JSON.stringify(content()) }));
    const result = await reply.json();
    if (reply.ok) {
      form.replaceChildren(`Sent. Your reference is ${result.reference}.`);
    } else {
      show(result);
    }
  } catch {
    status.textContent = "The form can't be sent now. Try again later; your answers are still here.";
  } finally {
    button.disabled = false;
  }
});

// Returns what the service takes: the fields of the person, and the values of each question that has an answer.
function content() {
  const user: Record<string, string> = {}, responses: Record<string, { value: string[] }> = {};
  for (const [name, value] of new FormData(form)) {
    if (typeof value !== "string" || value === "") continue;
    if (["email", "firstName", "lastName"].includes(name)) user[name] = value;
    else (responses[name] ??= { value: [] }).value.push(value);
  }
  return { user, responses };
}

// Shows each error after its field, and all others below the form.
function show(problem: Problem) {
  const rest: string[] = [];
  for (const { pointer = "", detail } of problem.errors ?? [{ detail: problem.detail }]) {
    const name = pointer.split("/")[2]?.replaceAll("~1", "/").replaceAll("~0", "~");
    const field = form.querySelector<HTMLElement>(`[name="${CSS.escape(name ?? "")}"]`);
    if (!field) {
      rest.push(`${pointer} ${detail}`.trim());
      continue;
    }
    const id = "error-" + form.querySelectorAll(".error").length;
    const error = Object.assign(document.createElement("span"), { className: "error", textContent: " " + detail, id });
    field.closest("p")!.append(error);
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-describedby", id);
  }
  status.textContent = rest.join("; ");
  form.querySelector<HTMLElement>("[aria-invalid]")?.focus();
}

function clear() {
  form.querySelectorAll(".error").forEach((error) => error.remove());
  form.querySelectorAll("[aria-invalid]").forEach((field) => (field.removeAttribute("aria-invalid"), field.removeAttribute("aria-describedby")));
}
