package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery/internal/schedule"
)

// keepAnswer is how much of a response's body is kept, in bytes.
const keepAnswer = 4 << 10

// dispatch loads the payloads of claimed jobs and starts their requests. If it can't, or if ctx has
// ended, it releases the jobs.
func (r *run) dispatch(ctx context.Context, jobs []*job) {
	jobs = slices.DeleteFunc(jobs, func(j *job) bool {
		unusable := j.scheduled.Refused() || j.endpoint.ID == "" // no room, or no share for this endpoint
		if unusable {
			r.release(j)
		}
		return unusable
	})
	if len(jobs) == 0 {
		return
	}
	err := r.load(jobs)
	if err != nil {
		// The claim loop handles the error, because claiming must pause as well.
		r.loadError.Store(&err)
		r.monitor.do(func(*schedule.Scheduler) schedule.Effect { return schedule.Effect{Wake: true} })
	} else {
		r.loaded.Store(true)
	}
	for _, j := range jobs {
		switch {
		case err != nil || ctx.Err() != nil:
			r.release(j)
		case j.scheduled.Prefetched():
			r.sends.Add(1) // until it is released
			r.change(func(s *schedule.Scheduler) schedule.Effect { return s.Loaded(j.scheduled) })
		default:
			r.sends.Add(1)
			go r.deliver(j)
		}
	}
}

// change changes the schedule and follows the effect.
func (r *run) change(f func(s *schedule.Scheduler) schedule.Effect) { r.follow(r.monitor.do(f)) }

// follow sends and releases prefetched jobs. They count in r.sends.
func (r *run) follow(effect schedule.Effect) {
	for _, d := range effect.Return {
		r.release(d.Job.(*job))
		r.sends.Done()
	}
	for _, d := range effect.Send {
		go r.deliver(d.Job.(*job))
	}
}

// loadFailure returns the error of Payloads since the last call, or nil.
func (r *run) loadFailure() error {
	if err := r.loadError.Swap(nil); err != nil {
		return *err
	}
	return nil
}

// load gives the jobs their bodies. Jobs of the same event share one.
func (r *run) load(jobs []*job) error {
	seen := make(map[string]bool, len(jobs))
	events := make([]string, 0, len(jobs))
	for _, j := range jobs {
		if id := j.claim.EventID; !seen[id] {
			seen[id] = true
			events = append(events, id)
		}
	}
	call, cancel := context.WithTimeout(r.work, r.storeTimeout)
	defer cancel()
	payloads, err := r.queue.Payloads(call, events)
	if err != nil {
		return fmt.Errorf("delivery: payloads: %w", err)
	}
	for _, j := range jobs {
		p, ok := payloads[j.claim.EventID]
		j.body, j.trace, j.missing = p.Body, p.TraceParent, !ok
	}
	return nil
}

// deliver makes one attempt after the other. Each job counts in r.sends.
func (r *run) deliver(j *job) {
	for j != nil {
		next := r.deliverOne(j)
		r.sends.Done()
		j = next
	}
}

// deliverOne makes one attempt, passes on its outcome, and returns the next job to send in its
// slot, if any.
func (r *run) deliverOne(j *job) *job {
	if r.opts.Now().Add(r.opts.Timeout + r.storeTimeout).After(j.until) {
		// The lease could end before the outcome is recorded, and another process would send the
		// delivery, too.
		r.release(j)
		return nil
	}
	timer := time.AfterFunc(slowAfter, func() {
		r.change(func(s *schedule.Scheduler) schedule.Effect { return s.Slow(j.scheduled) })
	})
	j.outcome = r.attempt(j)
	timer.Stop()
	a := &j.outcome.Attempt
	if r.opts.Metrics.Attempt != nil {
		r.opts.Metrics.Attempt(a.Error, a.Duration)
	}
	effect := r.done(j, resultOf(a.Error))
	var next *job
	if len(effect.Send) > 0 {
		next, effect.Send = effect.Send[0].Job.(*job), effect.Send[1:]
	}
	r.follow(effect)
	return next
}

// release returns a job to the queue that was not attempted.
func (r *run) release(j *job) {
	j.outcome = Outcome{
		ID: j.claim.ID, Endpoint: j.claim.Endpoint, Lease: j.claim.Lease, Result: Released, Due: r.opts.Now(),
	}
	r.follow(r.done(j, schedule.Unsent))
}

// done passes a job with its outcome to the results, and returns the effect.
func (r *run) done(j *job, result schedule.Result) schedule.Effect {
	j.body = nil
	effect := r.monitor.do(func(s *schedule.Scheduler) schedule.Effect {
		return s.End(j.scheduled, result, j.outcome.Attempt.Duration)
	})
	r.results.put(j)
	return effect
}

// attempt makes one attempt and returns its outcome.
func (r *run) attempt(j *job) Outcome {
	ctx, cancel := context.WithTimeout(r.sending, r.opts.Timeout)
	defer cancel()
	a := Attempt{Number: j.claim.Attempts + 1, StartedAt: r.opts.Now()}
	sending, ended := r.trace(ctx, j, a.Number)
	status, answer, err := r.exchange(sending, j, a.Number, a.StartedAt)
	end := r.opts.Now()
	a.Duration = end.Sub(a.StartedAt)
	a.Status, a.Answer, a.Error = status, answer, classify(ctx, status, err)

	o := Outcome{ID: j.claim.ID, Endpoint: j.claim.Endpoint, Lease: j.claim.Lease, Attempt: a}
	refused, _ := errors.AsType[*MailError](err)
	switch {
	case a.Error == "":
		o.Result = Delivered
	case a.Error == ClassCanceled:
		o.Result, o.Due = Released, end
	case refused != nil && !refused.Later.IsZero():
		o.Result, o.Due = Released, refused.Later
	case j.claim.Kind == Replay, a.Number > len(r.opts.Retries), refused != nil && refused.Final:
		o.Result = Failed
	default:
		o.Result, o.Due = Postponed, end.Add(r.opts.Retries[a.Number-1])
	}
	if ended != nil {
		ended(o)
	}
	return o
}

// exchange sends the request and reads the response. It returns the response's status even if
// reading the body fails.
//
// It calls the transport directly, since an http.Client would follow redirects and put the URL into
// its errors.
func (e *Engine) exchange(ctx context.Context, j *job, number int, at time.Time) (status int, answer []byte, err error) {
	if strings.HasPrefix(j.endpoint.URL, mailto) {
		return e.mail(ctx, j, number)
	}
	req, err := newRequest(ctx, j, number, at)
	if err != nil {
		return 0, nil, err
	}
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	// Parsed headers can take many times their size on the wire, and reading the body can take
	// long.
	resp.Header = nil
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body is the bare connection, which never ends.
		return resp.StatusCode, nil, nil
	}
	answer, err = readAnswer(resp.Body)
	return resp.StatusCode, answer, err
}

// readAnswer reads at most maxAnswer bytes and returns the first of them. If the body ends within
// that, the connection can be reused; otherwise it is closed.
func readAnswer(body io.Reader) ([]byte, error) {
	if body == http.NoBody {
		return nil, nil
	}
	kept, err := io.ReadAll(io.LimitReader(body, keepAnswer))
	if err == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(body, maxAnswer-int64(len(kept))))
	}
	if len(kept) == 0 {
		kept = nil
	}
	return kept, err
}
