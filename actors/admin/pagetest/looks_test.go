package pagetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// leastContrast is what text needs against its ground to be read by most people: the level AA of WCAG.
const leastContrast = 4.5

// faint lists the texts that are seen now and have less contrast than that, with their colours.
const faint = `(least) => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[0-9.]+/g).map(Number);

    return { r, g, b, a };
  };
  const over = (top, under) => {
    const mix = (x, y) => x * top.a + y * (1 - top.a);

    return { r: mix(top.r, under.r), g: mix(top.g, under.g), b: mix(top.b, under.b), a: 1 };
  };
  const light = ({ r, g, b }) => {
    const part = (v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4);

    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (node) => {
    const under = node.parentElement ? ground(node.parentElement) : { r: 128, g: 128, b: 128, a: 1 };

    return over(parse(getComputedStyle(node).backgroundColor), under);
  };
  const found = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;

  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility({ checkVisibilityCSS: true }) || node.matches(":disabled")) continue;
    if (node.closest(".unseen, .skip, script, noscript")) continue;

    seen++;
    const back = ground(node);
    const text = over(parse(getComputedStyle(node).color), back);
    const [a, b] = [light(text), light(back)].sort((x, y) => y - x);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < least) found.add(node.tagName + "." + node.className + " " + walker.currentNode.data.trim().slice(0, 30) + ": " + contrast.toFixed(2));
  }

  if (seen < 10) found.add("only " + seen + " texts are seen");

  return [...found];
}`

// looks holds what is shown against each kind of screen: nothing sticks out, and every text can be read. Where MILLRACE_SHOTS
// names a directory, pictures are put there.
func looks(t *testing.T, ctx context.Context, steps func(string, ...step), what string) { //nolint:revive // it is the test's
	t.Helper()

	for _, screen := range []struct {
		name          string
		width, height int64
		scheme        string
	}{
		{"phone", 360, 740, "light"}, {"phone-dark", 360, 740, "dark"}, {"dark", 1280, 900, "dark"}, {"light", 1280, 900, "light"},
	} {
		name := what + "-" + screen.name
		steps(name, chromedp.EmulateViewport(screen.width, screen.height), scheme(screen.scheme),
			does(`document.body.offsetWidth`))

		fits, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`document.documentElement.scrollWidth <= innerWidth
			&& [...document.querySelectorAll("dialog[open]")].every((d) => d.scrollWidth <= d.clientWidth)`))
		if err != nil {
			t.Fatal(err)
		}

		if !fits {
			t.Errorf("%s: what is shown is wider than the screen", name)
		}

		pale, err := chromedp.Run(ctx, evaluated(faint, leastContrast))
		if err != nil {
			t.Fatal(err)
		}

		if len(pale) > 0 {
			t.Errorf("%s: these texts have too little contrast: %q", name, pale)
		}

		if dir := os.Getenv("MILLRACE_SHOTS"); dir != "" {
			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}

			if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// scheme has the browser ask for light or dark.
func scheme(name string) step {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})

		return err
	})
}
