package intake

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/formsvc/toolkit/httpx/internal/gate"
)

// Limits of pages in bytes: of the questions, and of what was typed on top.
const (
	pageSize  = 2 << 20
	typedSize = 2 << 20
	largePage = 64 << 10 // larger ones take a place, or are kept
	pagesMost = 16       // large pages that are kept
	pagesAge  = time.Hour
)

// A visitor may take replyTime to receive a reply, besides what [gate.PaceTime] allows.
const replyTime = 30 * time.Second

// A limited is a buffer of at most so many bytes more.
type limited struct {
	bytes.Buffer

	left int
}

// Write implements io.Writer.
func (b *limited) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errPage
	}
	return b.Buffer.Write(p)
}

// made returns the page that build returns, which shows the questions. The work takes a slot.
func (v *visit) made(most int, build func() *page) ([]byte, error) {
	slot, err := acquire(v.r.Context(), v.h.opts.Limits.Lists, v.tenant())
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	return v.render(build(), most)
}

// tenant returns who shares the slots for forms of one account.
func (v *visit) tenant() string { return "form " + string(v.campaign.AccountID) }

// blank sends the page with the questions. Large ones are kept, so that each is made once; of one that is too large, only that.
func (v *visit) blank() error {
	const field = `<input type="hidden" name="_page" value="` // no text of the owner has its quotes
	now := v.h.svc.Now()
	name, token := string(v.campaign.ID)+strconv.FormatInt(v.campaign.Version, 10)+v.t["code"]+fmt.Sprint(v.places), newPage(now)
	b, ok := v.h.pages.Get(name, now)
	if !ok {
		var err error
		if b, err = v.made(pageSize, func() *page { return v.formPage(nil, token) }); errors.Is(err, errPage) {
			b = nil
		} else if err != nil {
			return err
		}
		if b == nil || len(b) > largePage {
			v.h.pages.Put(name, b, now.Add(pagesAge))
		}
	}
	if b == nil {
		return errPage
	}
	if before, rest, ok := bytes.Cut(b, []byte(field)); ok {
		_, after, _ := bytes.Cut(rest, []byte(`"`))
		v.send(http.StatusOK, before, []byte(field+token+`"`), after)
	} else {
		v.send(http.StatusOK, b)
	}
	return nil
}

// again sends the page with what was typed and the errors.
func (v *visit) again(status int, build func() *page) error {
	b, err := v.made(2*pageSize+typedSize, build)
	if err == nil && len(b) > largePage && !v.place() {
		err = errBusy
	}
	if err == nil {
		v.send(status, b)
	}
	return err
}

// show sends a page without questions.
func (v *visit) show(status int, p *page) error {
	b, err := v.render(p, pageSize)
	if err == nil {
		v.send(status, b)
	}
	return err
}

// render returns a page of at most so many bytes.
func (v *visit) render(p *page, most int) ([]byte, error) {
	p.T, p.Version, p.Root, p.Style = v.t, v.h.theme.Version, v.root, v.h.theme.Form
	p.Scripts, p.Preview = len(p.Fields) > 0, v.preview
	v.dress(p)
	frame, err := v.h.theme.Frame(v.root, p.Title, v.t)
	p.Frame = frame
	b := limited{left: most}
	err = cmp.Or(err, v.h.page.ExecuteTemplate(&b, "page", p))
	return b.Bytes(), err
}

// send sends a page.
func (v *visit) send(status int, parts ...[]byte) {
	header, size := v.w.Header(), 0
	for _, b := range parts {
		size += len(b)
	}
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Language", v.t["code"])
	header.Add("Vary", "Accept-Language")
	header.Set("Content-Security-Policy", v.policy())
	header.Set("Content-Length", strconv.Itoa(size))
	v.begin(status, size)
	for _, b := range parts {
		_, _ = v.w.Write(b) // on an error the browser has disconnected
	}
}

// begin sends the head of a reply of that many bytes, and limits the time for the reply.
func (v *visit) begin(status, size int) {
	_ = http.NewResponseController(v.w).SetWriteDeadline(time.Now().Add(replyTime + gate.PaceTime(int64(size)))) // not every server has deadlines
	v.w.WriteHeader(status)
}

// policy returns the Content-Security-Policy of a page. Browsers hold the redirects after a form against form-action, too, so
// there is none if the owner chose where they go.
func (v *visit) policy() string {
	action, ancestors, pictures := "form-action 'self'; ", "'none'", "'self'"
	if v.preview {
		pictures = "'self' data:" // see dress
		ancestors += "; sandbox allow-scripts"
	} else if v.campaign != nil {
		f := &v.campaign.Form
		if f.RedirectURL != "" {
			action = ""
		}
		if len(f.AllowedOrigins) > 0 {
			ancestors = strings.Join(f.AllowedOrigins, " ") // origins are checked when they are saved
		}
	}
	return "default-src 'none'; img-src " + pictures + "; style-src 'self'" + v.h.theme.Form.Source + v.looks.Source + "; script-src 'self'; base-uri 'none'; " + action + "frame-ancestors " + ancestors
}
