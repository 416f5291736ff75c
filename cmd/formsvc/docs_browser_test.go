package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The page of the documentation works in a browser that can reach nothing but the
// server, by whatever address it is reached: with a mouse, with nothing but a keyboard,
// and on a phone.
func TestDocsInBrowser(t *testing.T) {
	t.Parallel()
	browser := launchBrowser(t)
	s := start(t, databases()[0].dsn(t), "--base-url", "https://forms.example.com/api")
	c := newClient(t, s.url, s.firstKey(t))
	campaign := c.campaign(t, "Bicycle survey – Übermut")

	t.Run("mouse", func(t *testing.T) {
		d := browser.open(t, s.url, "light", 0)
		d.authorize(c.key)
		if got := d.try("listCampaigns").execute("200"); !strings.Contains(got, "Bicycle survey – Übermut") {
			t.Errorf("listCampaigns shows %s", got)
		}
		got := d.try("createResponse").fill("uuid", campaign).execute("201")
		if list := c.list(t, campaign); len(list) != 1 || !strings.Contains(got, list[0].UUID) {
			t.Errorf("createResponse shows %s\nthere are %v", got, list)
		} else if got := d.try("listResponses").fill("uuid", campaign).execute("200"); !strings.Contains(got, list[0].UUID) {
			t.Errorf("listResponses shows %s", got)
		}
		d.try("createCampaign").execute("201") // what one call was given for its repetition is not another's
		if got := d.eval(`[...document.querySelectorAll("[data-base]")].every((e) => e.textContent === location.origin)`); got != "true" {
			t.Error("the commands name another server")
		}
		d.screenshot()
		d.finish()
	})

	t.Run("keyboard", func(t *testing.T) {
		d := browser.open(t, s.url, "dark", 0)
		d.tabTo(".skip")
		if got := d.eval(`document.activeElement.getBoundingClientRect().left >= 0`); got != "true" {
			t.Error("the link past the contents is not to be seen")
		}
		d.press(kb.Enter)
		d.tabTo(".btn.authorize").press(kb.Enter)
		d.wait(".modal-ux")
		d.tabTo(".modal-ux input").press(c.key)
		d.tabTo(".modal-ux .auth.authorize").press(kb.Enter)
		d.tabTo(".modal-ux .btn-done").press(kb.Enter)
		o := d.on("listCampaigns")
		d.tabTo(o.at + " .opblock-summary-control").press(kb.Enter)
		d.tabTo(o.at + " .try-out__btn").press(kb.Enter)
		d.tabTo(o.at + " .execute").press(kb.Enter)
		if got := o.answer("200"); !strings.Contains(got, "Bicycle survey – Übermut") {
			t.Errorf("listCampaigns shows %s", got)
		}
		d.screenshot()
		d.finish()
	})

	t.Run("phone", func(t *testing.T) {
		const width = 360
		d := browser.open(t, s.url, "light", width)
		d.fits(width)
		d.authorize(c.key)
		d.try("listCampaigns").execute("200")
		for _, operation := range []string{"uploadFile", "exportResponsesAsCsv"} {
			d.try(operation)
		}
		d.fits(width)
		d.screenshot()
		d.finish()
	})
}

// A lonelyBrowser is one for which no other host has an address.
type lonelyBrowser struct{ ctx context.Context }

func launchBrowser(t *testing.T) lonelyBrowser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"), chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil { // without a deadline, which would be the browser's
		t.Fatal(err)
	}
	return lonelyBrowser{ctx}
}

// A docs is the page in a tab of its own.
type docs struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	problems []string // what was asked of others, and errors on the console
	asked    int      // how many requests there were
}

// open opens the page, and notes from the beginning what must not be. A width makes it a
// phone.
func (b lonelyBrowser) open(t *testing.T, origin, scheme string, width int64) *docs {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	t.Cleanup(cancel)
	d := &docs{t: t, ctx: ctx, origin: origin}
	if err := chromedp.Listen(ctx, d.watch); err != nil {
		t.Fatal(err)
	}
	if width > 0 {
		d.do(chromedp.EmulateViewport(width, 740, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait))
	} else {
		d.do(chromedp.EmulateViewport(1200, 900))
	}
	called(d, log.Enable, cdp.Empty{})
	called(d, network.Enable, network.EnableParams{})
	called(d, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	called(d, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{
		Source: `window.violations = [];
			addEventListener("securitypolicyviolation", (e) => violations.push(e.effectiveDirective + " " + e.blockedURI));`,
	})
	d.do(chromedp.Navigate(origin + "/docs"))
	d.wait(d.on("listCampaigns").at)
	return d
}

// watch notes what the browser tells of the page. It is called in order with what the
// test does.
func (d *docs) watch(event any) {
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
			d.problems = append(d.problems, fmt.Sprintf("the page says: %s", event.Args[0].Value))
		}
	case *runtime.EventExceptionThrown:
		d.problems = append(d.problems, fmt.Sprintf("a script failed: %s", event.ExceptionDetails.Text))
	}
}

// called sends a command to the browser.
func called[P, R any](d *docs, command cdp.Command[P, R], params P) {
	d.t.Helper()
	if _, err := chromedp.Call(d.ctx, command, params); err != nil {
		d.t.Fatal(err)
	}
}

// do takes steps, each of which waits for what it is about.
func (d *docs) do(steps ...chromedp.Action[chromedp.Void]) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.ctx, 3*patience) // a browser is slow beside other tests
	defer cancel()
	for i, step := range steps {
		if err := chromedp.Do(ctx, step); err != nil {
			d.finish()
			d.t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

// eval returns what an expression is, as JSON.
func (d *docs) eval(expression string) string {
	d.t.Helper()
	v, err := chromedp.Run(d.ctx, chromedp.Evaluate[string](`JSON.stringify(`+expression+`)`))
	if err != nil {
		d.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until there is an element to be seen.
func (d *docs) wait(selector string) {
	d.t.Helper()
	d.do(chromedp.WaitVisible(chromedp.CSS(selector)))
}

// authorize gives the key to the page.
func (d *docs) authorize(key string) {
	d.t.Helper()
	d.do(chromedp.Click(chromedp.CSS(".btn.authorize")), chromedp.SendKeys(chromedp.CSS(".modal-ux input"), key),
		chromedp.Click(chromedp.CSS(".modal-ux .auth.authorize")), chromedp.Click(chromedp.CSS(".modal-ux .btn-done")),
		chromedp.WaitNotPresent(chromedp.CSS(".modal-ux")))
}

// press presses keys, wherever the focus is.
func (d *docs) press(keys string) {
	d.t.Helper()
	d.do(chromedp.KeyEvent(keys))
}

// tabTo presses Tab until an element has the focus, and shows all the way where the
// focus is.
func (d *docs) tabTo(selector string) *docs {
	d.t.Helper()
	for range 300 {
		d.press(kb.Tab)
		at := d.eval(fmt.Sprintf(`((e) => [
			e.matches(%q) ? "there" : "",
			e === document.body || getComputedStyle(e).outlineStyle !== "none" ? "" : e.outerHTML.slice(0, 200),
		])(document.activeElement)`, selector))
		var state [2]string
		if err := json.Unmarshal([]byte(at), &state); err != nil {
			d.t.Fatal(err)
		}
		if state[1] != "" {
			d.t.Errorf("nobody sees that this has the focus: %s", state[1])
		}
		if state[0] != "" {
			return d
		}
	}
	d.t.Fatalf("the keyboard does not reach %s", selector)
	return nil
}

// fits checks that the page is no wider than the screen.
func (d *docs) fits(width int) {
	d.t.Helper()
	if got, want := d.eval(`[innerWidth, document.scrollingElement.scrollWidth]`), fmt.Sprintf("[%d,%d]", width, width); got != want {
		d.t.Errorf("the screen and the page are %s wide, want %s", got, want)
	}
}

// screenshot keeps a picture of the page where "go test -artifacts" wants it.
func (d *docs) screenshot() {
	d.t.Helper()
	picture, err := chromedp.Run(d.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.t.ArtifactDir(), "docs.png"), picture, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// finish checks that nothing happened meanwhile that must not, and that the key is kept
// nowhere.
func (d *docs) finish() {
	d.t.Helper()
	if got := d.eval(`violations`); got != "[]" {
		d.t.Errorf("the policy forbade %s", got)
	}
	if got := d.eval(`[{...localStorage}, {...sessionStorage}, document.cookie]`); got != `[{},{},""]` {
		d.t.Errorf("the page stores %s", got)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, problem := range d.problems {
		d.t.Error(problem)
	}
	if d.asked < 6 { // the page and what it uses
		d.t.Errorf("only %d requests were noticed", d.asked)
	}
}

// An operation is one of the reference.
type operation struct {
	*docs
	at string // the selector
}

// on returns an operation.
func (d *docs) on(name string) operation {
	return operation{d, `[id^="operations-"][id$="-` + name + `"]`}
}

// try opens an operation and makes it ready to be tried.
func (d *docs) try(name string) operation {
	d.t.Helper()
	o := d.on(name)
	d.do(chromedp.Click(chromedp.CSS(o.at+" .opblock-summary-control")), chromedp.Click(chromedp.CSS(o.at+" .try-out__btn")))
	d.wait(o.at + " .execute")
	return o
}

// fill gives a parameter, which must have none, a value.
func (o operation) fill(parameter, value string) operation {
	o.t.Helper()
	o.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`%s tr[data-param-name=%q] input`, o.at, parameter)), value))
	return o
}

// execute makes the call and returns what it shows of the answer.
func (o operation) execute(status string) string {
	o.t.Helper()
	o.do(chromedp.Click(chromedp.CSS(o.at + " .execute")))
	return o.answer(status)
}

// answer returns what the page shows of the answer, which must have a status.
func (o operation) answer(status string) string {
	o.t.Helper()
	table := o.at + " .live-responses-table"
	o.wait(table + " .response-col_status")
	got, err := chromedp.Run(o.ctx, chromedp.TextContent(chromedp.CSS(table+" .response .response-col_status")))
	if err != nil {
		o.t.Fatal(err)
	}
	text, err := chromedp.Run(o.ctx, chromedp.TextContent(chromedp.CSS(table)))
	if err != nil {
		o.t.Fatal(err)
	}
	if strings.TrimSpace(got) != status {
		o.finish()
		o.t.Fatalf("the answer is %s, want %s: %s", got, status, text)
	}
	return text
}
