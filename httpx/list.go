package httpx

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/internal/wire"
)

func badCursor(detail string) *wire.Problem {
	p := invalidParameter([]formsvc.FieldError{{Pointer: "cursor", Code: "invalid_cursor", Detail: detail}})
	p.Code = "invalid_cursor"
	return p
}

// A scope identifies a list: a cursor is valid only for the list that returned it.
type scope [8]byte

// scope hashes everything that decides which records a list has, and in which order. It isn't a secret: a forged cursor
// reads only what the client could list anyway.
func (c *call) scope(q *listQuery) scope {
	pattern, _, _ := strings.Cut(c.route.Pattern, ".") // an export accepts the cursors of its list
	f := &q.filter
	search := q.search
	if len(q.answers) > 0 { // without them the scope is that of earlier versions
		search = fmt.Sprintf("%q %q", search, q.answers)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %t %q %q %q %d %d %d %q %q %q", pattern, c.who.AccountID, c.ids, q.page.Ascending,
		f.Status, f.Email, f.Reference, f.CreatedAfter.UnixMilli(), f.CreatedBefore.UnixMilli(), f.UpdatedAfter.UnixMilli(), q.state, search, f.Metadata))
	return scope(sum[:8])
}

// cursorVersion is the first byte of a cursor. The position and the scope follow, in URL-safe base64.
const cursorVersion = 1

// cursor returns the cursor of a position: the identifier of a list's last record, or a store's position in the events.
func cursor(at string, sum scope) string {
	raw := append([]byte{cursorVersion}, at...)
	return base64.RawURLEncoding.EncodeToString(append(raw, sum[:]...))
}

func parseCursor(s string, sum scope) (at string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	end := len(raw) - len(sum)
	if err != nil || end < 1 || raw[0] != cursorVersion || scope(raw[end:]) != sum {
		return "", false
	}
	return string(raw[1:end]), true
}

// seek sets the position of a list from its cursor, and reports whether it is one.
func (q *listQuery) seek(sum scope) (ok bool) {
	at, _ := parseCursor(q.cursor, sum)
	q.page.After, ok = formsvc.ParseID(at)
	return ok
}

// beginList begins the reply; append each item after beginItem.
func (c *call) beginList() { c.out = append(c.out, `{"items":[`...) }

func (c *call) beginItem(i int) {
	if i > 0 {
		c.out = append(c.out, ',')
		c.spill()
	}
}

// serveList serves a list with these parameters. read returns a page; item appends one item and returns its ID.
func serveList[T any](
	c *call, allowed string, read func(*listQuery) (formsvc.Page[T], error), item func(b []byte, x *T) ([]byte, formsvc.ID),
) error {
	q, err := parseQuery(c.r.URL.RawQuery, allowed)
	if err != nil {
		return err
	}
	sum := c.scope(&q)
	if q.cursor != "" && !q.seek(sum) {
		return badCursor("must be the nextCursor of this list, with the same filters and order")
	}
	page, err := read(&q)
	if err != nil {
		return err
	}
	if err := c.reserve(sizeOf(page.Items)); err != nil {
		return err
	}
	c.beginList()
	var last formsvc.ID
	for i := range page.Items {
		c.beginItem(i)
		c.out, last = item(c.out, &page.Items[i])
	}
	next := "null"
	if page.More && last != "" {
		next = `"` + cursor(string(last), sum) + `"`
	}
	c.out = fmt.Appendf(c.out, `],"total":%d,"limit":%d,"offset":%d,"nextCursor":%s}`, page.Total, q.page.Limit, q.page.Offset, next)
	return c.finishList()
}

// sizeOf returns about how many bytes the records have in a reply. Those that don't know their size are small.
func sizeOf[T any](items []T) (n int) {
	const small = 512
	for i := range items {
		if sized, ok := any(&items[i]).(interface{ Size() int }); ok {
			n += sized.Size()
		} else {
			n += small
		}
	}
	return n
}

// finishList sends the rest of the list.
func (c *call) finishList() error {
	if c.sent {
		c.write()
		return nil
	}
	return c.send(http.StatusOK, noStore)
}
