package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/api"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/ledger"
)

// readers is the number of concurrent downloads and requests.
const readers = 8

// Read reads everything about a campaign from the service at url: lists, the feed, and the files, comments and signatures
// of the responses in the ledger. It downloads every file.
func Read(ctx context.Context, c *api.Client, url, campaignID string, l *ledger.Ledger) (*Stored, error) {
	s := new(Stored)
	base := url + "/v1/campaigns/" + campaignID
	var campaign struct {
		Count int `json:"responseCount"`
	}
	if err := c.Get(ctx, base, &campaign); err != nil {
		return nil, err
	}
	s.Count = campaign.Count
	var err error
	if s.Responses, err = api.List[Response](ctx, c, base+"/responses"); err != nil {
		return nil, err
	}
	if s.Events, err = ReadEvents(ctx, c, url); err != nil {
		return nil, err
	}
	about := make(map[ledger.Kind]map[string]bool) // responses, by what there may be of them
	for _, e := range l.Entries() {
		if about[e.Kind] == nil {
			about[e.Kind] = make(map[string]bool)
		}
		about[e.Kind][e.Of] = true
	}
	stored := make(map[string]bool, len(s.Responses))
	for i := range s.Responses {
		stored[s.Responses[i].UUID] = true
	}
	var failed [3]error
	s.Files, failed[0] = ofResponses(ctx, c, base, "files", about[ledger.Upload], stored, func(f *File, _ string) { download(ctx, c, url, f) })
	s.Comments, failed[1] = ofResponses(ctx, c, base, "comments", about[ledger.Comment], stored, func(v *Comment, of string) { v.Response = of })
	s.Signatures, failed[2] = ofResponses(ctx, c, base, "signatures", about[ledger.Sign], stored, func(v *Signature, of string) { v.Response = of })
	return s, errors.Join(failed[:]...)
}

// ReadEvents reads the feed of the service at url.
func ReadEvents(ctx context.Context, c *api.Client, url string) ([]json.RawMessage, error) {
	return api.List[json.RawMessage](ctx, c, url+"/v1/events")
}

// ofResponses lists the records of each stored response, and calls a function for each record.
func ofResponses[T any](
	ctx context.Context, c *api.Client, base, what string, uuids, stored map[string]bool, look func(record *T, response string),
) (all []T, err error) {
	var mu sync.Mutex
	err = each(uuids, stored, func(uuid string) error {
		list, err := api.List[T](ctx, c, base+"/responses/"+uuid+"/"+what)
		for i := range list {
			look(&list[i], uuid)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, list...)
		return err
	})
	return all, err
}

// each calls do for every stored response, several at a time, and returns the first error.
func each(uuids, stored map[string]bool, do func(uuid string) error) (first error) {
	var (
		mu    sync.Mutex
		group sync.WaitGroup
		work  = make(chan string)
	)
	for range readers {
		group.Go(func() {
			for uuid := range work {
				if err := do(uuid); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
				}
			}
		})
	}
	for uuid := range uuids {
		if stored[uuid] { // otherwise the comparison reports it as lost
			work <- uuid
		}
	}
	close(work)
	group.Wait()
	return first
}

// download records the hash of a downloaded file, or the error.
func download(ctx context.Context, c *api.Client, url string, f *File) {
	a, err := c.Do(ctx, api.Request{Method: http.MethodGet, URL: url + "/v1/files/" + f.UUID})
	if f.Downloaded = Hash(a.Body); err != nil || a.Status != http.StatusOK {
		f.Downloaded = fmt.Sprintf("status %d (%v)", a.Status, err)
	}
}
