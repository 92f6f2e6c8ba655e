package pagetest

import (
	"context"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// operable marks what can be operated inside of a node, with a number each, and returns how many it is.
const operable = `(within) => {
  const all = [...document.querySelector(within).querySelectorAll("a[href], button, input, textarea, select")]
    .filter((node) => node.checkVisibility({ checkVisibilityCSS: true }) && !node.disabled);
  all.forEach((node, i) => { node.dataset.stop = i; });

  return all.map((node) => node.tagName + " " + (node.getAttribute("aria-label") || node.innerText || node.id));
}`

// focused says which of the marked has the focus, -1 for none, and whether that can be seen.
const focused = `(() => {
  const node = document.activeElement;
  const style = getComputedStyle(node);

  return {
    stop: node.dataset.stop === undefined ? -1 : Number(node.dataset.stop),
    seen: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    label: Boolean(node.labels?.length || node.innerText || node.getAttribute("aria-label")),
  };
})()`

type stop struct {
	Stop        int
	Seen, Label bool
}

// tabs presses Tab until all that can be operated inside of a node was reached, in the order in which it is shown.
func tabs(t *testing.T, ctx context.Context, within string) { //nolint:revive // it is the test's
	t.Helper()

	names, err := chromedp.Run(ctx, evaluated(operable, within))
	if err != nil {
		t.Fatal(err)
	}

	var reached []int

	for range 3 * len(names) { // some parts that scroll are stops, too
		if err := chromedp.Do(ctx, key(kb.Tab)); err != nil {
			t.Fatal(err)
		}

		at, err := chromedp.Run(ctx, chromedp.Evaluate[stop](focused))
		if err != nil {
			t.Fatal(err)
		}

		if at.Stop >= 0 && !slices.Contains(reached, at.Stop) {
			reached = append(reached, at.Stop)

			if !at.Seen || !at.Label {
				t.Errorf("%s: %q has the focus, and shows it: %t; it has a name: %t", within, names[at.Stop], at.Seen, at.Label)
			}
		}

		if len(reached) == len(names) {
			break
		}
	}

	for i, name := range names {
		if !slices.Contains(reached, i) {
			t.Errorf("%s: nobody reaches %q by the keyboard", within, name)
		}
	}

	// It may have begun in the middle.
	if first := slices.Index(reached, 0); first >= 0 && !slices.IsSorted(slices.Concat(reached[first:], reached[:first])) {
		t.Errorf("%s: the order is %v", within, reached)
	}
}

func TestEverythingIsDoneByTheKeyboard(t *testing.T) {
	t.Parallel()

	server := start(t)
	ctx, steps := visit(t, server)

	steps("it is there", rows(50), holds(`document.querySelectorAll(".stand").length === 1`))
	tabs(t, ctx, "body")

	steps("Enter opens a letter, and its title is read first", does(`document.querySelector('[data-letter="graves/0/3"] .name').focus()`),
		key(kb.Enter), holds(`document.querySelector("#letter").open && document.querySelector("#letter-replay")`),
		holds(`document.activeElement.id === "letter-title"`))
	tabs(t, ctx, "#letter")

	steps("Enter shows its body", does(`document.querySelector("#letter-show").focus()`), key(kb.Enter),
		holds(`document.querySelector("#letter-body").innerText.includes("amount") && document.activeElement.id === "letter-body"`))

	steps("Enter asks, and Escape takes it back, one dialog at a time", does(`document.querySelector("#letter-replay").focus()`),
		key(kb.Enter), holds(`document.querySelector("#dialog").open`))
	tabs(t, ctx, "#dialog")
	steps("Escape", key(kb.Escape), holds(`!document.querySelector("#dialog").open && document.querySelector("#letter").open`),
		holds(`document.activeElement.id === "letter-replay"`))
	steps("Escape again", key(kb.Escape), holds(`!document.querySelector("#letter").open`),
		holds(`document.activeElement.closest("li")?.dataset.letter === "graves/0/3"`))

	steps("a replay by Enter alone", does(`document.querySelector('[data-letter="graves/0/3"] .actions button').focus()`),
		key(kb.Enter), holds(`document.querySelector("#dialog").open && document.activeElement.type === "checkbox"`))
	steps("and Enter says yes", key(kb.Enter), holds(`!document.querySelector('[data-letter="graves/0/3"]')`), holds(`document.activeElement.id === "letters-title"`))

	steps("a seek by Enter alone", does(`document.querySelector('tr[data-queue="quakes/2"] .actions button:last-child').focus()`),
		key(kb.Enter), holds(`document.querySelector("#dialog").open && document.activeElement.id === "field-offset"`))
	steps("and Enter says yes again", key(kb.Enter), holds(`!document.querySelector("#dialog").open`), holds(`document.activeElement.closest("tr")?.dataset.queue === "quakes/2"`))

	if err := server.Close(); err != nil {
		t.Error(err)
	}
}
