package httpx

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/httpx/internal/people"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

// flushAt is about how many bytes of an export are sent at once.
const flushAt = 32 << 10

// Media types of exports. header=present says that the first record of a CSV file has the column names (RFC 4180 §3).
//
//nolint:gochecknoglobals // immutable
var (
	typeCSV    = []string{"text/csv; charset=utf-8; header=present"}
	typeNDJSON = []string{"application/x-ndjson"}
	typeXLSX   = []string{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}
	typeZIP    = []string{"application/zip"}
)

// An export is the writer of a reply with the responses of a campaign.
type export struct {
	*call
	mediaType []string
	extension string
	name      string // of the file
	pace      gate.Pace
	last      bool // whether the next write is the last
}

// exportNDJSON sends the responses, one a line.
func (h *Handler) exportNDJSON(c *call) error {
	return h.export(c, "", typeNDJSON, ".ndjson", writeNDJSON)
}

// exportCSV sends the responses as a table.
func (h *Handler) exportCSV(c *call) error {
	if p := people.Of(c.r.Context()); p != nil && p.Labels {
		return h.exportForPeople(c, typeCSV, ".csv", csvForPeople)
	}
	return h.export(c, "column", typeCSV, ".csv", writeCSV)
}

// export sends the requested responses. more has further parameters of the query. HEAD reads no responses, since it would cost as much as GET.
func (h *Handler) export(c *call, more string, mediaType []string, extension string, format exportFormat) error {
	q, err := c.exportQuery(more)
	if err != nil {
		return err
	}
	var zone *time.Location
	name := "responses-" + string(c.ids[0])
	if p := people.Of(c.r.Context()); p != nil {
		q.filter.NotStatus, zone, name = p.NotStatus, p.Zone, cmp.Or(p.Name, name)
	}
	responses, err := h.svc.Responses.Export(c.r.Context(), formsvc.ResponseQuery{
		AccountID: c.who.AccountID, CampaignID: c.ids[0], Filter: q.filter, Page: q.page,
	})
	if err != nil {
		return err
	}
	if responses.Search, err = q.searchOf(responses.Modules(), zone); err != nil {
		return err
	}
	done, err := h.transfer(c, h.shared.ExportWeight)
	if err != nil {
		return err
	}
	defer done()
	control := http.NewResponseController(c.w)
	e := &export{
		call: c, mediaType: mediaType, extension: extension, name: name,
		pace: gate.Pace{Grace: h.grace, Ahead: gate.Ahead, Set: func(t time.Time) { _ = control.SetWriteDeadline(t) }},
	}
	responses.Before = func(context.Context) error { return e.turn(func() error { return nil }) }
	if c.r.Method != http.MethodHead {
		_ = control.SetWriteDeadline(time.Time{}) // the columns of a table must be known before the first byte
		to := bufio.NewWriterSize(e, flushAt)
		if err := format(c.r.Context(), responses, to, q.columns); err != nil {
			return err
		}
		e.last = true
		if err := to.Flush(); err != nil {
			return err
		}
	}
	e.begin()
	return nil
}

// exportQuery reads the query of an export. Its cursor is one of the list's, or the identifier of the last response
// that the client got.
func (c *call) exportQuery(more string) (listQuery, error) {
	q, err := parseQuery(c.r.URL.RawQuery, filterParams+" order cursor search "+answerParams+" "+more)
	if err != nil || q.cursor == "" {
		return q, err
	}
	var ok bool
	if q.page.After, ok = formsvc.ParseID(q.cursor); ok {
		return q, nil
	}
	if !q.seek(c.scope(&q)) {
		err = badCursor("must be the uuid of a response, or the nextCursor of the list, with the same filters and order")
	}
	return q, err
}

// begin sends the headers, unless that was done. Until then an error can still get a problem document.
func (e *export) begin() {
	if !e.sent {
		e.w.Header()["Content-Disposition"] = []string{`attachment; filename="` + e.name + e.extension + `"`}
		e.start(http.StatusOK, e.mediaType, noStore, -1)
	}
}

// Write implements io.Writer.
func (e *export) Write(p []byte) (n int, err error) {
	e.begin()
	err = e.turn(func() (err error) {
		e.pace.Begin()
		n, err = e.w.Write(p)
		e.pace.End(n)
		return err
	})
	if err != nil {
		err = wire.ClientGone(fmt.Errorf("send an export: %w", err))
	}
	return n, err
}

// turn releases the slot, calls wait, and acquires a slot of exports. Exports read and format all the time, so they have few slots, and
// hold none while they wait for their clients.
func (e *export) turn(wait func() error) (err error) {
	e.slot.Release()
	if err = wait(); err == nil && !e.last {
		if e.slot, err = e.h.shared.Exports.Acquire(e.r.Context(), string(e.who.AccountID)); err != nil {
			err = e.h.overloaded(e.call, err)
		}
	}
	return err
}
