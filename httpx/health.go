package httpx

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// getHealth replies 200 while the process runs.
func (h *Handler) getHealth(c *call) error {
	c.out = append(c.out, `{"status":"ok"}`...)
	return c.send(http.StatusOK, noStore)
}

type readinessReply struct {
	Status     string   `json:"status"`
	Components []string `json:"components,omitzero"`
}

// getReadiness replies 503 while requests would fail. While only those fail that need some component, it replies 200 and names it.
func (h *Handler) getReadiness(c *call) error {
	reply := readinessReply{Status: "ready"}
	err := h.ready.ask(c.r.Context())
	if degraded, ok := errors.AsType[*formsvc.DegradedError](err); ok {
		reply = readinessReply{"degraded", degraded.Components}
	} else if err != nil {
		return &wire.Problem{
			Status: http.StatusServiceUnavailable, Code: "not_ready", Cause: err,
			Told:   true, // when the state changed
			Detail: "The service isn't ready.",
		}
	}
	c.out = wire.AppendReply(c.out, reply)
	return c.send(http.StatusOK, noStore)
}

const (
	// readyFor is how long a result of Options.Ready is used. Anyone may ask, and a check costs the store and the blob store a call.
	readyFor = time.Second
	// readyTimeout limits a check. Service.Ready takes at most 3 seconds.
	readyTimeout = 5 * time.Second
)

// readiness runs checks, one at a time, and logs when their result changes.
type readiness struct {
	check  func(context.Context) error
	logger *slog.Logger
	turn   chan struct{} // held during a check

	err   error
	until time.Time // when err is outdated
	state string    // as it was logged
}

// ask returns the result of a check that began less than a second ago, or of a new one. It fails if an earlier check doesn't end.
func (r *readiness) ask(ctx context.Context) error {
	waiting, stop := context.WithTimeout(ctx, readyTimeout)
	defer stop()
	select {
	case r.turn <- struct{}{}:
	case <-waiting.Done():
		return waiting.Err()
	}
	defer func() { <-r.turn }()
	now := time.Now()
	if now.Before(r.until) {
		return r.err
	}
	// The result is for the others too, so it doesn't end with this request.
	checking, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()
	err := r.check(checking)
	r.log(ctx, err)
	r.err, r.until = err, now.Add(readyFor)
	return err
}

// log says what changed since the last check.
func (r *readiness) log(ctx context.Context, err error) {
	state := ""
	degraded, partly := errors.AsType[*formsvc.DegradedError](err)
	switch {
	case errors.Is(err, http.ErrServerClosed): // that is expected
		return
	case partly:
		state = fmt.Sprint(degraded.Components)
	case err != nil:
		state = "failed"
	}
	if state == r.state {
		return
	}
	r.state = state
	switch {
	case err == nil:
		r.logger.InfoContext(ctx, "ready again")
	case partly:
		r.logger.WarnContext(ctx, "degraded", slog.Any("error", err))
	default:
		r.logger.ErrorContext(ctx, "not ready", slog.Any("error", err))
	}
}
