package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// with runs do with the cell's system.
func (c *cell) with(ctx context.Context, url string, do func(t *target) error) error {
	t, err := c.open(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(do(t), t.close())
}

// creates returns the load that creates responses. Its numbers begin at first.
func (t *target) creates(first int) *load {
	form := newTemplate(t.request(http.MethodPost, t.path, t.body))
	return &load{status: t.created, next: func(buf []byte, i int) []byte { return form.with(buf, first+i) }}
}

// samples is the number of responses that are read in turn.
const samples = 256

// filled starts the cell's system, stores responses and lets do measure. It gets the identifiers of some of them.
func (c *cell) filled(ctx context.Context, do func(t *target, ids []string) error) error {
	return c.with(ctx, "", func(t *target) error {
		l := t.creates(0)
		l.conns, l.n = 64, c.fill
		ids := make([]string, min(samples, c.fill))
		every := c.fill / len(ids)
		l.answer = func(i int, body []byte) error {
			if i%every != 0 || i/every >= len(ids) {
				return nil
			}
			var made map[string]any
			err := json.Unmarshal(body, &made)
			ids[i/every], _ = made[t.id].(string)
			if err == nil && ids[i/every] == "" {
				err = fmt.Errorf("a response has no %s: %.300s", t.id, body)
			}
			return err
		}
		if _, _, err := l.run(ctx, t); err != nil {
			return fmt.Errorf("fill: %w", err)
		}
		return do(t, ids)
	})
}

// measure runs a load for the length of the cell, after a warm-up, and prints its result.
func (c *cell) measure(ctx context.Context, t *target, name string, l *load) (answered int, err error) {
	l.conns, l.length, l.warm = c.conns, c.length, min(c.length/4, time.Second)
	s, answered, err := l.run(ctx, t)
	if err != nil {
		return answered, err
	}
	return answered, c.report(name, fmt.Sprintf("/conns=%d/fill=%d", c.conns, c.fill), 0, &s)
}

// create measures new responses. No webhook wants them.
func create(ctx context.Context, c *cell) error { return c.creates(ctx, "Create", "") }

// keyed measures the same with keys that protect against sending twice, as forms always do.
func keyed(ctx context.Context, c *cell) error {
	return c.creates(ctx, "Keyed", "Idempotency-Key: "+mark+"00000000\r\n")
}

func (c *cell) creates(ctx context.Context, name, header string) error {
	return c.filled(ctx, func(t *target, _ []string) error {
		t.auth += header
		l := t.creates(c.fill)
		t.auth = strings.TrimSuffix(t.auth, header)
		answered, err := c.measure(ctx, t, name, l)
		if err != nil {
			return err
		}
		return t.check(ctx, c.fill+answered, 0)
	})
}

// form measures new responses that visitors submit with the published page, as a browser does.
func form(ctx context.Context, c *cell) error {
	return c.filled(ctx, func(t *target, _ []string) error {
		var page []byte
		if err := t.send(ctx, http.MethodGet, t.form, "", nil, 0, http.StatusOK, func(r io.Reader) (err error) {
			page, err = io.ReadAll(r)
			return err
		}); err != nil {
			return err
		}
		_, rest, ok := strings.Cut(string(page), `name="_page" value="`)
		token, _, _ := strings.Cut(rest, `"`)
		if !ok {
			return fmt.Errorf("the page has no token: %.300s", page)
		}
		time.Sleep(humanly)
		body := "_page=" + url.QueryEscape(token) + "&_honeypot=&" + typed
		request := newTemplate(fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\nContent-Type: application/x-www-form-urlencoded\r\n"+
			"Content-Length: %d\r\n\r\n%s", t.form, len(body), body))
		l := &load{status: http.StatusSeeOther, next: func(buf []byte, i int) []byte { return request.with(buf, c.fill+i) }}
		answered, err := c.measure(ctx, t, "Form", l)
		if err != nil {
			return err
		}
		t.path += "?status=pending" // spam isn't what is measured
		return t.check(ctx, c.fill+answered, 0)
	})
}

// humanly is how long a visitor has a page before it is sent. A program that is quicker is taken for a bot.
const humanly = 2500 * time.Millisecond

// get measures single responses.
func get(ctx context.Context, c *cell) error {
	return c.filled(ctx, func(t *target, ids []string) error {
		requests := make([][]byte, len(ids))
		for i, id := range ids {
			requests[i] = t.request(http.MethodGet, t.path+"/"+id, "")
			if one, err := t.ask(ctx, http.MethodGet, t.path+"/"+id, "", http.StatusOK); err != nil || one[t.id] != id {
				return fmt.Errorf("response %s is %v, %w", id, one, err)
			}
		}
		l := &load{status: http.StatusOK, next: func(_ []byte, i int) []byte { return requests[i%len(requests)] }}
		_, err := c.measure(ctx, t, "Get", l)
		return err
	})
}

// list measures the newest 20 responses with the total.
func list(ctx context.Context, c *cell) error {
	return c.filled(ctx, func(t *target, _ []string) error {
		page, err := t.ask(ctx, http.MethodGet, t.path+t.newest, "", http.StatusOK)
		if items, ok := page["items"].([]any); err != nil || !ok || len(items) != min(20, c.fill) || page[t.total] != float64(c.fill) {
			return fmt.Errorf("the list has %d items of %v, want %d: %w", len(items), page[t.total], c.fill, err)
		}
		request := t.request(http.MethodGet, t.path+t.newest, "")
		l := &load{status: http.StatusOK, next: func([]byte, int) []byte { return request }}
		_, err = c.measure(ctx, t, "List", l)
		return err
	})
}

// delivering starts the cell's system with a webhook and a receiver.
func (c *cell) delivering(ctx context.Context, do func(t *target, r *receiver) error) error {
	r, err := receive(ctx)
	if err != nil {
		return err
	}
	err = c.with(ctx, r.url, func(t *target) error { return do(t, r) })
	return errors.Join(err, r.close())
}

// deliver measures responses from their requests to the arrival of their webhooks, while requests go on.
func deliver(ctx context.Context, c *cell) error {
	return c.delivering(ctx, func(t *target, r *receiver) error {
		acknowledged := 0
		for _, length := range []time.Duration{c.length / 4, c.length} { // the first one warms up
			r.reset()
			first := acknowledged
			l := t.creates(first)
			next := l.next
			l.conns, l.length, l.next = c.conns, length, func(buf []byte, i int) []byte {
				r.note(first + i)
				return next(buf, i)
			}
			begin := time.Now()
			s, answered, err := l.run(ctx, t)
			if err != nil {
				return err
			}
			acknowledged += answered
			if err := r.measured(ctx, t, &s, begin, answered); err != nil {
				return err
			}
			if length != c.length {
				continue
			}
			s.latencies = r.latencies()
			if err := c.report("Deliver", fmt.Sprintf("/conns=%d", c.conns), 0, &s); err != nil {
				return err
			}
		}
		return t.check(ctx, acknowledged, completion)
	})
}

// completion is how long a system may take to record the last deliveries.
const completion = 10 * time.Second

// measured ends a measurement of deliveries when all n have arrived.
func (r *receiver) measured(ctx context.Context, t *target, s *sample, begin time.Time, n int) error {
	last, err := r.await(ctx, n)
	if err != nil {
		return err
	}
	s.n, s.elapsed = n, last.Sub(begin)
	s.after, err = t.used()
	return err
}

// drain measures a backlog from when its receiver works again to the last arrival.
func drain(ctx context.Context, c *cell) error {
	return c.delivering(ctx, func(t *target, r *receiver) error {
		release := r.hold()
		defer release()
		l := t.creates(0)
		l.conns, l.n = c.conns, c.events
		if _, _, err := l.run(ctx, t); err != nil {
			return fmt.Errorf("fill the backlog: %w", err)
		}
		before, err := t.used()
		if err != nil {
			return err
		}
		s, begin := sample{before: before}, time.Now()
		release()
		if err := r.measured(ctx, t, &s, begin, c.events); err != nil {
			return err
		}
		if err := c.report("Drain", fmt.Sprintf("/events=%d", c.events), 0, &s); err != nil {
			return err
		}
		return t.check(ctx, c.events, completion)
	})
}

// content returns a file. It is random, so that nothing can compress it.
func content(size int64) []byte {
	file := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(file) // never fails
	return file
}

// A comparer fails unless what is written to it is the start of a file. The rest remains.
type comparer struct{ rest []byte }

func (c *comparer) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(c.rest, p) {
		return 0, errors.New("the file differs")
	}
	c.rest = c.rest[len(p):]
	return len(p), nil
}

// transfer measures a file on one connection, up as a form and down.
func transfer(ctx context.Context, c *cell) error {
	const (
		boundary = "formbench-0123456789abcdef"
		before   = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"scan.pdf\"\r\nContent-Type: application/pdf\r\n\r\n"
		after    = "\r\n--" + boundary + "--\r\n"
		kind     = "multipart/form-data; boundary=" + boundary
	)
	return c.with(ctx, "", func(t *target) error {
		made, err := t.ask(ctx, http.MethodPost, t.path, t.body, t.created)
		if err != nil {
			return err
		}
		file := content(c.fileSize)
		var uploaded map[string]any
		if err := c.transfers(t, "Upload", func() error {
			body := io.MultiReader(strings.NewReader(before), bytes.NewReader(file), strings.NewReader(after))
			return t.send(ctx, http.MethodPost, t.uploads(made[t.id]), kind, body, len(before)+len(file)+len(after), t.created,
				func(r io.Reader) error { return json.NewDecoder(r).Decode(&uploaded) })
		}); err != nil {
			return err
		}
		return c.transfers(t, "Download", func() error {
			c := comparer{file}
			return t.send(ctx, http.MethodGet, t.download(uploaded), "", nil, 0, http.StatusOK, func(r io.Reader) error {
				_, err := io.Copy(&c, r)
				if err == nil && len(c.rest) > 0 {
					err = fmt.Errorf("the last %d bytes are missing", len(c.rest))
				}
				return err
			})
		})
	})
}

// transfers repeats one transfer for the length of the cell and prints the result.
func (c *cell) transfers(t *target, name string, once func() error) (err error) {
	var s sample
	if s.before, err = t.used(); err != nil {
		return err
	}
	for begin := time.Now(); s.n == 0 || s.elapsed < c.length; s.n++ {
		if err := once(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.elapsed = time.Since(begin)
	}
	if s.after, err = t.used(); err != nil {
		return err
	}
	return c.report(name, fmt.Sprintf("/bytes=%d", c.fileSize), c.fileSize, &s)
}
