package pagetest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/millrace/millrace/actors/admin"
)

// find returns the browser.
func find(t *testing.T) string {
	t.Helper()

	names := []string{"chromium-headless-shell", "chromium", "google-chrome", "headless-shell"}
	look := func() string {
		for _, name := range names {
			if program, err := exec.LookPath(name); err == nil {
				return program
			}
		}

		return ""
	}

	program := look()
	if program == "" && os.Geteuid() == 0 {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()

		const install = "apt-get update -qq && apt-get install -y -qq chromium-headless-shell"
		if output, err := exec.CommandContext(ctx, "sh", "-c", install).CombinedOutput(); err != nil {
			t.Fatalf("no Chromium in the PATH, and %s: %v\n%s", install, err, output)
		}

		program = look()
	}

	if program == "" {
		t.Fatalf("no Chromium in the PATH, which the page is tested in (Debian: apt-get install chromium-headless-shell); looked for %v", names)
	}

	return program
}

// browse starts a browser with one tab; it ends with the test.
func browse(t *testing.T) context.Context {
	t.Helper()

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(find(t)), chromedp.NoSandbox,
		chromedp.WSURLReadTimeout(time.Minute))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)

	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)

	return ctx
}

// step is something that is done in the browser.
type step = chromedp.Action[chromedp.Void]

// holds waits until an expression of the page's is true.
func holds(expression string) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.PollFunction[bool](fmt.Sprintf("() => Boolean(%s)", expression),
			chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(30*time.Second))(ctx, t)
		if err != nil {
			err = fmt.Errorf("%s: %w", expression, err)
		}

		return chromedp.Void{}, err
	}
}

// does runs a line of JavaScript.
func does(format string, args ...any) step {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(format, args...))
}

// click clicks what a selector finds, as a program does: no place on the screen is asked for.
func click(selector string) step { return does("document.querySelector(%q).click()", selector) }

// press clicks with the mouse in the middle of what a selector finds, so that it has to be seen, and nothing to lie above it.
func press(selector string) step {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		at, err := chromedp.Evaluate[[]float64](fmt.Sprintf(`(() => {
			const node = document.querySelector(%q);
			node.scrollIntoView({ block: "center", behavior: "instant" });
			const box = node.getBoundingClientRect();

			return [box.x + box.width / 2, box.y + box.height / 2];
		})()`, selector))(ctx, t)
		if err != nil {
			return chromedp.Void{}, fmt.Errorf("press %s: %w", selector, err)
		}

		return chromedp.MouseClickXY(at[0], at[1])(ctx, t)
	}
}

// key presses a key.
func key(name string) step { return chromedp.KeyEvent(name) }

// visit opens the page in a browser, and gives it the token. What steps it returns fail the test with what is on the page then.
func visit(t *testing.T, server *admin.Server) (context.Context, func(string, ...step)) {
	t.Helper()

	ctx := browse(t)
	steps := func(what string, actions ...step) {
		t.Helper()

		if err := chromedp.Do(ctx, actions...); err != nil {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
			t.Fatalf("%s: %v\n%s", what, err, text)
		}
	}

	steps("the token is asked for", chromedp.EmulateViewport(1280, 900), chromedp.Navigate("http://"+server.Address()+"/"),
		holds(`!document.querySelector("#token").hidden`),
		does(`document.querySelector("#secret").value = %q`, token),
		does(`document.querySelector("#token").requestSubmit()`))

	return ctx, steps
}

// evaluated returns the texts that a function of JavaScript returns for an argument.
func evaluated(function string, argument any) chromedp.Action[[]string] {
	text, err := json.Marshal(argument)
	if err != nil {
		return func(context.Context, *chromedp.Target) ([]string, error) { return nil, err }
	}

	return chromedp.Evaluate[[]string](fmt.Sprintf("(%s)(%s)", function, text))
}
