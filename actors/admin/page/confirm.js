// Nothing is changed without a second word.

import { byId, el, put, show } from "./dom.js";

/**
 * confirm shows what is about to be done, with fields to fill in ({name, label, value, type, hint}), and does it when it is
 * confirmed. What goes wrong is told in the dialog, which stays open. What prepare answers is shown meanwhile; act is given a
 * function that shows how far it is, and says whether the dialog is still open. At the end done is called.
 */
export function confirm({ title, text, fields = [], action, danger = false, prepare, act, done = () => {} }) {
  const dialog = byId("dialog");
  const inputs = new Map();
  const failed = el("p", { class: "failed", role: "alert", hidden: true });
  const said = el("p", { class: "muted", role: "status", id: "said", hidden: true });
  const say = (words) => {
    put(said, words);
    show(said, true);

    return dialog.open && form.isConnected;
  };
  const yes = el("button", { type: "submit", class: danger ? "danger solid" : "primary", id: "yes" }, action);
  const no = el("button", { type: "button", on: { click: () => dialog.close() } }, "Cancel");
  const rows = fields.map((field) => {
    const input = el(field.type === "text-area" ? "textarea" : "input", {
      id: "field-" + field.name, type: field.type || "text", inputmode: field.inputmode, autocomplete: "off",
      required: field.required, pattern: field.pattern, rows: field.rows, spellcheck: "false",
    });
    input.value = field.value ?? "";
    inputs.set(field.name, input);

    if (field.type === "checkbox") {
      return el("div", { class: "field" }, el("label", { class: "check" }, input, field.label),
        field.hint ? el("p", { class: "muted" }, field.hint) : null);
    }

    return el("div", { class: "field" }, el("label", { for: input.id }, field.label), input,
      field.hint ? el("p", { class: "muted" }, field.hint) : null);
  });
  const form = el("form", {
    on: {
      submit: async (event) => {
        event.preventDefault();
        yes.disabled = true;
        show(failed, false);

        try {
          await act(Object.fromEntries([...inputs].map(([name, input]) => [name, valueOf(input)])), say);
          if (form.isConnected) dialog.close();
          done();
        } catch (error) {
          put(failed, error.message);
          show(failed, true);
        } finally {
          yes.disabled = false;
        }
      },
    },
  }, el("h2", { id: "dialog-title" }, title), el("p", {}, text), ...rows, said, failed, el("div", { class: "buttons" }, no, yes));

  dialog.replaceChildren(form);
  dialog.showModal();
  (rows.length ? [...inputs.values()][0] : no).focus();

  if (prepare) {
    say("Counting …"); // it has the place of the answer, or the buttons would move away below a finger
    prepare().then(say, (error) => say(error.message));
  }
}

const valueOf = (input) => (input.type === "checkbox" ? input.checked : input.value.trim());
