package storagetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

// must ends the test if err isn't nil.
func (w *world) must(what string, err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("%s: %v", what, err)
	}
}

// wantError fails the test unless err is target.
func (w *world) wantError(what string, err, target error) {
	w.Helper()
	if !errors.Is(err, target) {
		w.Errorf("%s: error %v, want %v", what, err, target)
	}
}

// same fails the test unless got equals want, and names the first field that differs. Nil and empty slices and maps are
// equal; times are equal only in the same location.
func (w *world) same(what string, got, want any) {
	w.Helper()
	if path, g, x := difference(what, reflect.ValueOf(got), reflect.ValueOf(want)); path != "" {
		w.Errorf("%s is %s, want %s", path, g, x)
	}
}

// difference returns where two values of one type differ and the differing parts, or nothing.
func difference(path string, got, want reflect.Value) (at, g, x string) {
	if !got.IsValid() || !want.IsValid() {
		if got.IsValid() != want.IsValid() {
			return path, fmt.Sprint(got), fmt.Sprint(want)
		}
		return "", "", ""
	}
	switch got.Kind() {
	case reflect.Interface:
		return difference(path, got.Elem(), want.Elem())
	case reflect.Struct:
		if got.NumField() > 0 && got.Type().Field(0).IsExported() {
			for i := range got.NumField() {
				at, g, x = difference(path+"."+got.Type().Field(i).Name, got.Field(i), want.Field(i))
				if at != "" {
					return at, g, x
				}
			}
			return "", "", ""
		}
	case reflect.Slice:
		if got.Type().Elem().Kind() == reflect.Uint8 { // long payloads: don't compare byte by byte
			return difference(path, reflect.ValueOf(string(got.Bytes())), reflect.ValueOf(string(want.Bytes())))
		}
		if got.Len() != want.Len() {
			return path + " (length)", fmt.Sprint(got.Len()), fmt.Sprint(want.Len())
		}
		for i := range got.Len() {
			if at, g, x = difference(fmt.Sprintf("%s[%d]", path, i), got.Index(i), want.Index(i)); at != "" {
				return at, g, x
			}
		}
		return "", "", ""
	case reflect.Map:
		return mapDifference(path, got, want)
	}
	if got.Equal(want) {
		return "", "", ""
	}
	return path, show(got.Interface()), show(want.Interface())
}

func mapDifference(path string, got, want reflect.Value) (at, g, x string) {
	if got.Len() != want.Len() {
		return path + " (length)", fmt.Sprint(got.Len()), fmt.Sprint(want.Len())
	}
	for _, key := range want.MapKeys() {
		element := fmt.Sprintf("%s[%s]", path, show(key.Interface()))
		if !got.MapIndex(key).IsValid() {
			return element, "missing", show(want.MapIndex(key).Interface())
		}
		if at, g, x = difference(element, got.MapIndex(key), want.MapIndex(key)); at != "" {
			return at, g, x
		}
	}
	return "", "", ""
}

// show formats the value for a message: it escapes texts and cuts long ones.
func show(value any) string {
	s := fmt.Sprintf("%+q", fmt.Sprint(value))
	if t, ok := value.(time.Time); ok {
		s = t.Format(time.RFC3339Nano) + " " + t.Location().String()
	}
	const most = 200
	if len(s) > most {
		s = fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return s
}

// all returns every record of a list, oldest first.
func all[T any](
	w *world, what string, id func(*T) formsvc.ID, fetch func(formsvc.PageQuery) (formsvc.Page[T], error),
) []T {
	w.Helper()
	var items []T
	q := formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true}
	for {
		page, err := fetch(q)
		w.must(what, err)
		items = append(items, page.Items...)
		if !page.More {
			return items
		}
		last := q.After
		if len(page.Items) > 0 {
			last = id(&page.Items[len(page.Items)-1])
		}
		if last <= q.After {
			w.Fatalf("%s: the page after %q says that more follow, and ends at %q", what, q.After, last)
		}
		q.After = last
	}
}

func (w *world) campaigns(account formsvc.ID) []formsvc.Campaign {
	w.Helper()
	return all(w, "Campaigns", func(c *formsvc.Campaign) formsvc.ID { return c.ID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.Campaign], error) {
			return w.store.Campaigns(w.ctx, formsvc.CampaignQuery{AccountID: account, Page: q})
		})
}

func (w *world) responses(c *formsvc.Campaign) []formsvc.Response {
	w.Helper()
	return all(w, "Responses", func(r *formsvc.Response) formsvc.ID { return r.ID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.Response], error) {
			return w.store.Responses(w.ctx, formsvc.ResponseQuery{AccountID: c.AccountID, CampaignID: c.ID, Page: q})
		})
}

func (w *world) files(r *formsvc.Response) []formsvc.File {
	w.Helper()
	return all(w, "Files", func(f *formsvc.File) formsvc.ID { return f.ID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.File], error) {
			return w.store.Files(w.ctx, formsvc.FileQuery{
				AccountID: r.AccountID, CampaignID: r.CampaignID, ResponseID: r.ID, Page: q,
			})
		})
}

func (w *world) deliveries(hook *formsvc.Webhook) []formsvc.Delivery {
	w.Helper()
	return all(w, "Deliveries", func(d *formsvc.Delivery) formsvc.ID { return d.ID },
		func(q formsvc.PageQuery) (formsvc.Page[formsvc.Delivery], error) {
			return w.store.Deliveries(w.ctx, formsvc.DeliveryQuery{AccountID: hook.AccountID, WebhookID: hook.ID, Page: q})
		})
}

// A snapshot is everything that can be read from a store.
type snapshot map[string]any

func (w *world) snapshot() snapshot {
	w.Helper()
	accounts, err := w.store.Accounts(w.ctx)
	w.must("Accounts", err)
	ids := make([]formsvc.ID, len(accounts))
	for i := range accounts {
		ids[i] = accounts[i].ID
	}
	all, err := contents(w.ctx, w.store, ids)
	w.must("contents", err)
	return all
}

// unchanged fails the test unless the store equals the snapshot.
func (w *world) unchanged(what string, before *snapshot) {
	w.Helper()
	w.same("the store after "+what+": snapshot", w.snapshot(), *before)
}

// check is must for any goroutine.
func (w *world) check(what string, err error) {
	w.Helper()
	if err != nil {
		w.Errorf("%s: %v", what, err)
	}
}

// wantReady fails the test unless exactly these endpoints have work at that time.
func (w *world) wantReady(what string, now time.Time, hooks ...*formsvc.Webhook) {
	w.Helper()
	want := make([]string, len(hooks))
	for i, hook := range hooks {
		want[i] = string(hook.ID)
	}
	w.same(what+": endpoints that are ready", w.ready(now), want)
}

// pick returns one of the choices.
func pick[T any](random *rand.Rand, choices ...T) T { return choices[random.IntN(len(choices))] }
