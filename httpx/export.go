package httpx

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// flushAt is about how many bytes of an export are sent at once.
const flushAt = 32 << 10

// Media types of exports. header=present says that the first record of a CSV file has the column names (RFC 4180 §3).
//
//nolint:gochecknoglobals // immutable
var (
	typeCSV    = []string{"text/csv; charset=utf-8; header=present"}
	typeNDJSON = []string{"application/x-ndjson"}
)

// An export sends the responses of a campaign, which a format has appended to the call's buffer.
type export struct {
	*call
	mediaType []string
	extension string
	control   *http.ResponseController
	pace      pace
}

// exportNDJSON sends the responses, one a line.
func (h *Handler) exportNDJSON(c *call) error {
	return h.export(c, typeNDJSON, ".ndjson", appendNDJSON)
}

// exportCSV sends the responses as a table.
func (h *Handler) exportCSV(c *call) error { return h.export(c, typeCSV, ".csv", appendCSV) }

func tooManyColumns() *problem {
	return &problem{
		status: http.StatusUnprocessableEntity, code: "too_many_columns",
		detail: "The responses have answers under more than " + strconv.Itoa(maxColumns) +
			" names, or names of more than 1 MiB together, which is too much for a table. Ask for responses.ndjson.",
	}
}

// export sends the requested responses. HEAD reads none of them, since it would cost as much as GET.
func (h *Handler) export(c *call, mediaType []string, extension string, format exportFormat) error {
	q, err := c.exportQuery()
	if err != nil {
		return err
	}
	responses, err := h.svc.Responses.Export(c.r.Context(), formsvc.ResponseQuery{
		AccountID: c.who.AccountID, CampaignID: c.ids[0], Filter: q.filter, Page: q.page,
	})
	if err != nil {
		return err
	}
	done, err := h.transfer(c, h.exportWeight)
	if err != nil {
		return err
	}
	defer done()
	control := http.NewResponseController(c.w)
	e := &export{
		call: c, mediaType: mediaType, extension: extension, control: control,
		pace: pace{grace: h.grace, ahead: paceAhead, set: func(t time.Time) { _ = control.SetWriteDeadline(t) }},
	}
	responses.Before = func(context.Context) error { return e.turn(func() error { return nil }) }
	if c.r.Method != http.MethodHead {
		_ = control.SetWriteDeadline(time.Time{}) // the columns of a table must be known before the first byte
		if err := format(c.r.Context(), responses, &c.out, func() error { return e.flush(flushAt) }); err != nil {
			return err
		}
	}
	return e.flush(0)
}

// exportQuery reads the query of an export. Its cursor is one of the list's, or the identifier of the last response
// that the client got.
func (c *call) exportQuery() (listQuery, error) {
	q, err := parseQuery(c.r.URL.RawQuery, filterParams|paramOrder|paramCursor)
	if err != nil || q.cursor == "" {
		return q, err
	}
	var ok bool
	if q.page.After, ok = formsvc.ParseID(q.cursor); ok {
		return q, nil
	}
	if q.page.After, ok = parseCursor(q.cursor, c.scope(&q)); !ok {
		return q, badCursor("must be the uuid of a response, or the nextCursor of the list, with the same filters and order")
	}
	return q, nil
}

// flush sends c.out if it is longer than above. The first call also sends the headers; until then an error can still
// get a problem document.
func (e *export) flush(above int) error {
	if len(e.out) < above {
		return nil
	}
	if !e.sent {
		e.w.Header()["Content-Disposition"] = []string{`attachment; filename="responses-` + string(e.ids[0]) + e.extension + `"`}
		e.start(http.StatusOK, e.mediaType, noStore, -1)
	}
	if e.r.Method == http.MethodHead || len(e.out) == 0 {
		return nil
	}
	err := e.turn(func() error {
		e.pace.begin()
		n, err := e.w.Write(e.out)
		e.pace.end(n)
		return err
	})
	e.out = e.out[:0]
	if err != nil {
		return &problem{
			status: statusClientGone, code: "client_gone", detail: "The client disconnected.",
			cause: fmt.Errorf("send an export: %w", err),
		}
	}
	return nil
}

// turn releases the slot, calls wait, and acquires a slot of exports. Exports read and format all the time, so they have few slots, and
// hold none while they wait for their clients.
func (e *export) turn(wait func() error) (err error) {
	e.slot.release()
	if err = wait(); err == nil {
		e.slot, err = e.h.exportGate.acquire(e.r.Context(), string(e.who.AccountID))
	}
	return err
}
