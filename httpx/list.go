package httpx

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/formsvc/toolkit/formsvc"
)

// listQuery reads the query of a list, with the position of its cursor.
func (c *call) listQuery(allowed parameter) (q listQuery, sum scope, err error) {
	q, err = parseQuery(c.r.URL.RawQuery, allowed)
	if err != nil {
		return q, sum, err
	}
	sum = c.scope(&q)
	if q.cursor != "" {
		var ok bool
		if q.page.After, ok = parseCursor(q.cursor, sum); !ok {
			return q, sum, badCursor("must be the nextCursor of this list, with the same filters and order")
		}
	}
	return q, sum, nil
}

func badCursor(detail string) *problem {
	p := invalidParameter([]formsvc.FieldError{{Pointer: "cursor", Code: "invalid_cursor", Detail: detail}})
	p.code = "invalid_cursor"
	return p
}

// A scope identifies a list: a cursor is valid only for the list that returned it.
type scope [8]byte

// scope hashes everything that decides which records a list has, and in which order. It isn't a secret: a forged cursor
// reads only what the client could list anyway.
func (c *call) scope(q *listQuery) scope {
	var room [512]byte
	pattern, _, _ := strings.Cut(c.route.Pattern, ".") // an export accepts the cursors of its list
	b := append(room[:0], pattern...)
	b = append(b, 0)
	b = append(b, c.who.AccountID...)
	b = append(b, 0)
	b = append(append(b, c.ids[0]...), c.ids[1]...)
	b = append(b, 0)
	b = strconv.AppendBool(b, q.page.Ascending)
	f := &q.filter
	if !f.IsZero() {
		for _, s := range f.Status {
			b = append(append(b, 0, 1), s...)
		}
		b = append(append(b, 0, 2), f.Email...)
		b = append(append(b, 0, 3), f.Reference...)
		for _, t := range [...]time.Time{f.CreatedAfter, f.CreatedBefore, f.UpdatedAfter} {
			b = append(b, 0, 4)
			if !t.IsZero() {
				b = binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
			}
		}
	}
	if q.state != "" {
		b = append(append(b, 0, 5), q.state...)
	}
	if q.search != "" {
		b = append(append(b, 0, 6), q.search...)
	}
	sum := sha256.Sum256(b)
	return scope(sum[:8])
}

// A cursor is a version, the last record's identifier and the scope, in URL-safe base64.
const (
	cursorVersion = 1
	cursorBytes   = 1 + 16 + 8
)

func appendCursor(b []byte, last formsvc.ID, sum scope) []byte {
	var raw [cursorBytes]byte
	raw[0] = cursorVersion
	id, _ := uuid.Parse(string(last)) // an ID is always canonical
	copy(raw[1:17], id[:])
	copy(raw[17:], sum[:])
	return base64.RawURLEncoding.AppendEncode(b, raw[:])
}

func parseCursor(s string, sum scope) (formsvc.ID, bool) {
	var raw [cursorBytes + 2]byte
	if len(s) != base64.RawURLEncoding.EncodedLen(cursorBytes) {
		return "", false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(s))
	if err != nil || n != cursorBytes || raw[0] != cursorVersion || scope(raw[17:25]) != sum {
		return "", false
	}
	return formsvc.ID(uuid.UUID(raw[1:17]).String()), true
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
	c *call, allowed parameter, read func(*listQuery) (formsvc.Page[T], error), item func(b []byte, x *T) ([]byte, formsvc.ID),
) error {
	q, sum, err := c.listQuery(allowed)
	if err != nil {
		return err
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
	if !page.More {
		last = ""
	}
	return c.endList(&q, page.Total, last, sum)
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

// endList ends the reply. last is the last item on the page if more follow, otherwise empty.
func (c *call) endList(q *listQuery, total int64, last formsvc.ID, sum scope) error {
	b := append(c.out, `],"total":`...)
	b = strconv.AppendInt(b, total, 10)
	b = append(b, `,"limit":`...)
	b = strconv.AppendInt(b, int64(q.page.Limit), 10)
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, int64(q.page.Offset), 10)
	b = append(b, `,"nextCursor":`...)
	if last == "" {
		b = append(b, "null"...)
	} else {
		b = append(b, '"')
		b = appendCursor(b, last, sum)
		b = append(b, '"')
	}
	c.out = append(b, '}')
	return c.finishList()
}

// finishList sends the rest of the list.
func (c *call) finishList() error {
	if c.sent {
		c.write()
		return nil
	}
	return c.send(http.StatusOK, noStore)
}
