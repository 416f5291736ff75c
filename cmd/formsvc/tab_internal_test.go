//go:build long

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// A lonelyBrowser is a browser that can resolve no other host. Names in ".lan" are this machine.
type lonelyBrowser struct{ ctx context.Context }

func launchBrowser(t *testing.T) lonelyBrowser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(lookFor(t, "chromium", "chromium-browser", "google-chrome")), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP *.lan 127.0.0.1 , MAP localhost 127.0.0.1 , MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // a deadline would apply to the browser
		t.Fatal(err)
	}
	return lonelyBrowser{ctx}
}

// A tab shows a page in a browser that can reach only one server.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string // requests to other hosts, and console errors
	asked    int      // number of requests
}

// open opens a page, and records problems from the beginning. A width makes it a phone.
func (b lonelyBrowser) open(t *testing.T, origin, path, scheme string, width int64) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	d := &tab{t: t, ctx: ctx, origin: origin}
	noError(t, chromedp.Listen(ctx, d.watch))
	if width > 0 {
		d.do(chromedp.EmulateViewport(width, 740, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait))
	} else {
		d.do(chromedp.EmulateViewport(1200, 900))
	}
	called(d, log.Enable, cdp.Empty{})
	called(d, network.Enable, network.EnableParams{})
	called(d, cdppage.Enable, cdppage.EnableParams{})
	called(d, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	called(d, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
		Source: `window.violations = [];
			addEventListener("securitypolicyviolation", (e) => violations.push(e.effectiveDirective + " " + e.blockedURI));`,
	})
	d.do(chromedp.Navigate(origin + path))
	return d
}

// watch records the browser's events about the page. It is called in order with the steps of the test.
func (d *tab) watch(event any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch event := event.(type) {
	case *network.EventRequestWillBeSent:
		d.asked++
		if u := event.Request.URL; !strings.HasPrefix(u, d.origin+"/") && !strings.HasPrefix(u, "data:") {
			d.problems = append(d.problems, "the page asks for "+u)
		}
	case *log.EventEntryAdded:
		if event.Entry.Level == log.EntryLevelError || event.Entry.Level == log.EntryLevelWarning {
			d.problems = append(d.problems, "the browser says: "+event.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		if event.Type == runtime.ConsoleAPICalledTypeError || event.Type == runtime.ConsoleAPICalledTypeWarning {
			d.problems = append(d.problems, fmt.Sprintf("the page says: %s %s", event.Args[0].Value, event.Args[0].Description))
		}
	case *cdppage.EventJavascriptDialogOpening:
		d.problems = append(d.problems, "a dialog: "+event.Message)
	case *runtime.EventExceptionThrown:
		d.problems = append(d.problems, fmt.Sprintf("a script failed: %s", event.ExceptionDetails.Text))
	}
}

// called sends a command to the browser.
func called[P, R any](d *tab, command cdp.Command[P, R], params P) {
	d.t.Helper()
	must(chromedp.Call(d.ctx, command, params))
}

// do takes steps, each of which waits for its element.
func (d *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	d.t.Helper()
	for i, step := range steps {
		err := chromedp.Do(d.ctx, step)
		for range 600 {
			// The page was being replaced; nothing was done yet.
			if err == nil || !strings.Contains(err.Error(), "Not attached to an active page") && !strings.Contains(err.Error(), "net::ERR_ABORTED") {
				break
			}
			time.Sleep(50 * time.Millisecond)
			err = chromedp.Do(d.ctx, step)
		}
		if err != nil {
			d.finish()
			d.t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

// eval returns the value of an expression as JSON.
func (d *tab) eval(expression string) string {
	d.t.Helper()
	v, err := chromedp.Run(d.ctx, chromedp.Evaluate[string](`JSON.stringify(`+expression+`)`))
	if err != nil {
		d.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an element is visible.
func (d *tab) wait(selector string) {
	d.t.Helper()
	d.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// clickFor clicks until an element appears. Like a person, it clicks again if the page moved under the mouse.
func (d *tab) clickFor(selector, wanted string) {
	d.t.Helper()
	for range 6 {
		d.do(chromedp.Click(chromedp.CSS(selector)))
		for range 300 {
			if d.eval(fmt.Sprintf(`document.querySelector(%q)?.checkVisibility() ?? false`, wanted)) == "true" {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	d.finish()
	d.t.Fatalf("no %s comes of %s", wanted, selector)
}

// fits checks that the page is no wider than the screen.
func (d *tab) fits(page string, width int) {
	d.t.Helper()
	if got, want := d.eval(`[innerWidth, document.scrollingElement.scrollWidth]`), fmt.Sprintf("[%d,%d]", width, width); got != want {
		d.t.Errorf("%s: the screen and the page are %s wide, want %s", page, got, want)
	}
}

// keep saves a picture under a name.
func (d *tab) keep(name string) {
	d.t.Helper()
	picture := must(chromedp.Run(d.ctx, chromedp.FullScreenshot(100)))
	noError(d.t, os.WriteFile(filepath.Join(d.t.ArtifactDir(), name), picture, 0o600))
}

// forgetConsole drops the expected console messages so far.
func (d *tab) forgetConsole() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.problems = slices.DeleteFunc(d.problems, func(p string) bool { return strings.HasPrefix(p, "the browser says: Failed to load resource") })
}

// finish checks that there were no problems, and that the browser stored no key.
func (d *tab) finish() {
	d.t.Helper()
	equal(d.t, d.eval(`violations`), "[]", "the policy forbade %s")
	equal(d.t, d.eval(`[{...localStorage}, {...sessionStorage}, document.cookie]`), `[{},{},""]`, "the page stores %s")
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, problem := range d.problems {
		d.t.Error(problem)
	}
	if d.asked < 3 { // the page and its assets
		d.t.Errorf("only %d requests were noticed", d.asked)
	}
}
