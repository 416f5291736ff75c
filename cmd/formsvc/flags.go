package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/go-json-experiment/json"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/egress"
)

// A span is a duration on the command line: as in Go, such as 90m, or with days in front, such as 30d or 1d12h.
type span time.Duration

const day = 24 * time.Hour

// UnmarshalText reads a span, which must be positive.
func (s *span) UnmarshalText(text []byte) error {
	days, rest, found := strings.Cut(string(text), "d")
	if !found {
		days, rest = "0", days
	} else if rest == "" {
		rest = "0"
	}
	n, err := strconv.ParseUint(days, 10, 31)
	d, restErr := time.ParseDuration(rest)
	if err != nil || restErr != nil {
		return fmt.Errorf("%q is not a duration such as 30d, 1d12h or 90m", text)
	}
	if d < 0 || time.Duration(n) > (math.MaxInt64-d)/day || n == 0 && d == 0 {
		return fmt.Errorf("%q is out of range", text)
	}
	*s = span(time.Duration(n)*day + d)
	return nil
}

// A moment is a time in the past on the command line: in RFC 3339, or how long ago.
type moment time.Time

// UnmarshalText reads a time, or a span before now.
func (m *moment) UnmarshalText(text []byte) error {
	var ago span
	if ago.UnmarshalText(text) == nil {
		*m = moment(time.Now().Add(-time.Duration(ago)))
		return nil
	}
	t, err := time.Parse(time.RFC3339, string(text))
	if err != nil || t.After(time.Now()) {
		return fmt.Errorf("%q is neither a time in the past such as 2026-11-21T08:30:00Z nor a duration such as 2h", text)
	}
	*m = moment(t)
	return nil
}

// byteSize is a number of bytes on the command line: 100MB, 1.5GB, 64MiB, 4096.
type byteSize int64

// UnmarshalText reads a size.
func (b *byteSize) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64/2 {
		return fmt.Errorf("%q is not a size such as 100MB, 1.5GB or 64MiB", text)
	}
	*b = byteSize(n)
	return nil
}

// workflow is a [formsvc.Workflow] in a JSON file on the command line.
type workflow struct{ *formsvc.Workflow }

// UnmarshalText reads the file.
func (w *workflow) UnmarshalText(path []byte) error {
	text, err := os.ReadFile(string(path))
	if err == nil {
		err = json.Unmarshal(text, &w.Workflow, json.RejectUnknownMembers(true))
	}
	if err == nil && w.Workflow != nil {
		err = w.Check()
	}
	return err
}

// recordID is the UUID of a record on the command line.
type recordID formsvc.ID

// UnmarshalText reads a UUID.
func (r *recordID) UnmarshalText(text []byte) error {
	id, ok := formsvc.ParseID(string(text))
	if !ok {
		return fmt.Errorf("%q is not a UUID", text)
	}
	*r = recordID(id)
	return nil
}

// allowing is the --webhook-allow flag of commands that save webhook URLs or send to them.
type allowing struct {
	WebhookAllow []netip.Prefix `name:"webhook-allow" placeholder:"CIDR" help:"Address range that webhooks may use although it isn't public, such as 10.0.0.0/8; repeatable."`
}

// policy returns what the flag allows.
func (a *allowing) policy() (*egress.Policy, error) {
	policy, err := egress.New(&egress.Options{Allow: a.WebhookAllow})
	if err != nil {
		return nil, usageError{fmt.Errorf("--webhook-allow: %w", err)}
	}
	return policy, nil
}

// checkURL returns the check of a webhook's URL. Its errors name the violated rule, but no package and no address.
func checkURL(policy *egress.Policy) func(ctx context.Context, url string) error {
	return func(ctx context.Context, url string) error {
		err := policy.CheckURL(ctx, url)
		if errors.Is(err, egress.ErrRefused) {
			return fmt.Errorf("is not allowed: %s", strings.TrimPrefix(err.Error(), egress.ErrRefused.Error()+": "))
		}
		return err
	}
}
