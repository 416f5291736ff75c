//go:build failpoints

package main

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/formsvc"
)

// failpointEnv is the variable that says where the process dies: NAME, or NAME:N for the N-th time that it reaches the
// point. "formsvc failpoints" prints the names.
const failpointEnv = "FORMSVC_FAILPOINT"

// A unit is an atomic operation: if the process dies around it, it has happened entirely or not at all. There is a point
// before and one after each.
type unit string

// The units of the blob store, and the exchange with a receiver.
const (
	unitRequest    unit = "request"
	unitBlobClaim  unit = "blob.claim"
	unitBlobPut    unit = "blob.put"
	unitBlobDelete unit = "blob.delete"
	unitBlobClean  unit = "blob.clean"
)

// storeUnits maps the store and queue methods that this program calls and that write or lease.
func storeUnits() map[string]unit {
	return map[string]unit{
		"CreateAccount": "account.create", "UpdateAccount": "account.update", "CreateKey": "key.create", "RevokeKey": "key.revoke",
		"UseKeys": "key.use", "CreateCampaign": "campaign.create", "UpdateCampaign": "campaign.update", "CreateResponse": "response.create",
		"UpdateResponse": "response.update", "CreateFile": "file.create", "BarFiles": "file.bar", "CreateComment": "comment.create",
		"CreateSignature": "signature.create", "Erase": "erase", "CreateWebhook": "webhook.create", "UpdateWebhook": "webhook.update",
		"DeleteWebhook": "webhook.delete", "CreateTest": "webhook.test", "Redeliver": "redeliver", "RedeliverFailed": "redeliver-failed",
		"Prune": "prune", "ClaimDigests": "digest.claim", "FinishDigest": "digest.finish", "Note": "note", "TakeQuota": "quota.take",
		"ReturnQuota": "quota.return", "CreateLink": "link.create", "RedeemLink": "link.redeem", "EndSessions": "session.end",
		"Ready": "queue.ready", "Claim": "queue.claim", "Payloads": "queue.payloads", "Finish": "queue.finish", "Failures": "notice.claim",
		"Noted": "notice.finish",
	}
}

// middleOf returns the name of the point in the middle of a unit, or "".
func middleOf(u unit) string {
	return map[unit]string{
		unitRequest: "sent", // entirely, without a response yet
		unitBlobPut: "read", // entirely, without a blob yet
	}[u]
}

// A moment is the position of a point in its unit.
type moment int

const (
	before moment = iota // nothing of the unit has happened
	middle
	after // all of it has happened, but nobody was told yet
)

// A failpoint is a place where the process can be made to die.
type failpoint struct {
	unit   unit
	moment moment
}

// allFailpoints returns every failpoint, sorted by the names of the units.
func allFailpoints() []failpoint {
	units := append(slices.Collect(maps.Values(storeUnits())), unitRequest, unitBlobClaim, unitBlobPut, unitBlobDelete, unitBlobClean)
	var list []failpoint
	for _, u := range slices.Sorted(slices.Values(units)) {
		list = append(list, failpoint{u, before})
		if middleOf(u) != "" {
			list = append(list, failpoint{u, middle})
		}
		list = append(list, failpoint{u, after})
	}
	return list
}

func (p failpoint) String() string {
	return string(p.unit) + "." + [...]string{before: "before", middle: middleOf(p.unit), after: "after"}[p.moment]
}

// failpoints kills the process at one failpoint. It is safe for concurrent use.
type failpoints struct {
	armed   bool
	at      failpoint
	nth     int64 // time that the process reaches it
	reached atomic.Int64
	logger  *slog.Logger
}

// newFailpoints parses a value of failpointEnv. With "" the process never dies.
func newFailpoints(value string, logger *slog.Logger) (*failpoints, error) {
	f := &failpoints{nth: 1, logger: logger}
	if value == "" {
		return f, nil
	}
	name, number, counted := strings.Cut(value, ":")
	if counted {
		var err error
		if f.nth, err = strconv.ParseInt(number, 10, 64); err != nil || f.nth < 1 {
			return nil, usageError{fmt.Errorf("%s: want NAME:N with an N of at least 1, got %q", failpointEnv, value)}
		}
	}
	var names strings.Builder
	for _, p := range allFailpoints() {
		if p.String() == name {
			f.armed, f.at = true, p
			return f, nil
		}
		names.WriteString("\n  " + p.String())
	}
	return nil, usageError{fmt.Errorf("%s: there is no failpoint %q; there are:%s", failpointEnv, name, names.String())}
}

// reach kills the process if it is to die here. It does so at once, like a power loss: deferred functions don't run.
func (f *failpoints) reach(u unit, m moment) {
	if !f.armed || f.at != (failpoint{u, m}) || f.reached.Add(1) != f.nth {
		return
	}
	f.logger.Warn("failpoint", slog.String("name", f.at.String()))
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // this goroutine stops here, however long the signal takes
}

// withFailpoints returns a store with failpoints, and replaces the blob store in the options likewise. The returned
// function makes contexts in which the requests of deliveries have failpoints too. It doesn't replace their transport, so
// that refused addresses stay refused.
func withFailpoints(s backend, o *formsvc.Options) (backend, func(context.Context) context.Context, error) {
	if o == nil {
		o = new(formsvc.Options)
	}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	f, err := newFailpoints(os.Getenv(failpointEnv), logger)
	if err != nil {
		return nil, nil, err
	}
	o.Blobs = f.blobs(o.Blobs)
	return f.store(s), f.requests, nil
}

// requests returns a context in which HTTP requests have failpoints: when connected but before sending, after sending, and
// when the response begins.
func (f *failpoints) requests(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { f.reach(unitRequest, before) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				f.reach(unitRequest, middle)
			}
		},
		GotFirstResponseByte: func() { f.reach(unitRequest, after) },
	})
}

// failpointsCommand adds the command "failpoints", which only this build has.
func failpointsCommand() kong.Option {
	const help = "Print where " + failpointEnv + "=NAME or NAME:N makes the process die, one name a line."
	return kong.DynamicCommand("failpoints", help, "", new(failpointsCmd))
}

type failpointsCmd struct{}

// Run prints the names.
func (failpointsCmd) Run(std streams) error {
	for _, p := range allFailpoints() {
		if _, err := fmt.Fprintln(std.out, p); err != nil {
			return err
		}
	}
	return nil
}

// do runs a unit that returns only an error. It reaches the point after the unit only on success.
func (f *failpoints) do(u unit, call func() error) error {
	f.reach(u, before)
	err := call()
	if err == nil {
		f.reach(u, after)
	}
	return err
}

// making runs a unit that returns a result, like do.
func making[T any](f *failpoints, u unit, call func() (T, error)) (result T, err error) {
	err = f.do(u, func() error {
		result, err = call()
		return err
	})
	return result, err
}

var _ blobstore.Cleaner = cleaningBlobs{}
