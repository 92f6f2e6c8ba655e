package pagetest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
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
