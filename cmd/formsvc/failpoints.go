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

// failpointEnv names the variable that says where the process dies: NAME, or NAME:N
// for the N-th time that it comes there. "formsvc failpoints" prints the names.
const failpointEnv = "FORMSVC_FAILPOINT"

// A unit is something that either happened or did not when the process dies around
// it. There is a point before and one after each.
type unit string

// The units of the blob store, and the exchange with a receiver.
const (
	unitRequest    unit = "request"
	unitBlobClaim  unit = "blob.claim"
	unitBlobPut    unit = "blob.put"
	unitBlobDelete unit = "blob.delete"
	unitBlobClean  unit = "blob.clean"
)

// storeUnits are the methods of a store and of its queue that this program calls and that
// write or lease.
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

// middleOf returns what the point in the middle of a unit is called, or "".
func middleOf(u unit) string {
	return map[unit]string{
		unitRequest: "sent", // all of it, and no answer yet
		unitBlobPut: "read", // all of it, and no blob yet
	}[u]
}

// A moment says which point of a unit it is.
type moment int

const (
	before moment = iota // nothing of the unit has happened
	middle
	after // all of it has, and nobody knows yet
)

// A failpoint is a place where the process can be made to die.
type failpoint struct {
	unit   unit
	moment moment
}

// allFailpoints returns every failpoint, by the names of the units.
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

// failpoints make the process die at one of them. They are safe for concurrent use.
type failpoints struct {
	armed   bool
	at      failpoint
	nth     int64 // time that the process comes there
	reached atomic.Int64
	logger  *slog.Logger
}

// newFailpoints returns failpoints that do what a value of failpointEnv says; with ""
// the process lives.
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

// reach ends the process if it is to die here. It does so at once, as a loss of
// power would: nothing that is deferred runs.
func (f *failpoints) reach(u unit, m moment) {
	if !f.armed || f.at != (failpoint{u, m}) || f.reached.Add(1) != f.nth {
		return
	}
	f.logger.Warn("failpoint", slog.String("name", f.at.String()))
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // whoever came here gets no further, however long the signal takes
}

// withFailpoints returns what to work on in place of a store, and puts what to work on
// in place of the blob store into the options. The function that it returns makes
// contexts in which the requests of deliveries have failpoints, too: their transport
// is not replaced, so that what it refuses to connect to stays refused.
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

// requests returns a context in which HTTP requests have failpoints: when there is a
// connection and nothing was sent, when all was sent, and when the answer begins.
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

// failpointsCommand adds the command that only this build has.
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

// do runs a unit of which nothing but an error is returned. Like all of its kind it
// reaches the point after the unit only if that did not fail.
func (f *failpoints) do(u unit, call func() error) error {
	f.reach(u, before)
	err := call()
	if err == nil {
		f.reach(u, after)
	}
	return err
}

// making runs a unit that returns what came of it.
func making[T any](f *failpoints, u unit, call func() (T, error)) (result T, err error) {
	err = f.do(u, func() error {
		result, err = call()
		return err
	})
	return result, err
}

var _ blobstore.Cleaner = cleaningBlobs{}
