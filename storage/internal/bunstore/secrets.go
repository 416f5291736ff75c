package bunstore

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/keyring"
)

// secrets are the sealed values of a webhook; "" stands for a missing one.
type secrets struct {
	webhook                   string
	secret, previous, headers string
}

func (v *secrets) texts() [3]string { return [...]string{v.secret, v.previous, v.headers} }

// The columns of sealed values. A value is bound to its column, the table and the
// webhook's identifier.
const (
	secretColumn   = "secret"
	previousColumn = "previous_secret"
	headersColumn  = "headers"
)

// sealedHeader is the stored form of a header.
type sealedHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (s *Store) seal(w *formsvc.Webhook) (*secrets, error) {
	headers := ""
	if len(w.Headers) > 0 {
		list := make([]sealedHeader, len(w.Headers))
		for i, h := range w.Headers {
			list[i] = sealedHeader(h)
		}
		text, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("bunstore: headers: %w", err)
		}
		headers = string(text)
	}
	id := string(w.ID)
	return &secrets{
		webhook: id, secret: s.sealOne(w.Secret, secretColumn, id), previous: s.sealOne(w.Previous, previousColumn, id),
		headers: s.sealOne(headers, headersColumn, id),
	}, nil
}

func (s *Store) sealOne(plain, column, webhook string) string {
	if plain == "" {
		return ""
	}
	return s.keys.Seal(plain, "formsvc_webhooks", column, webhook)
}

func (s *Store) openOne(sealed, column, webhook string) (string, error) {
	if sealed == "" {
		return "", nil
	}
	plain, err := s.keys.Open(sealed, "formsvc_webhooks", column, webhook)
	if err != nil {
		return "", fmt.Errorf("bunstore: %s of webhook %s: %w", column, webhook, err)
	}
	return plain, nil
}

func (s *Store) openSecret(v *secrets) (string, error) {
	return s.openOne(v.secret, secretColumn, v.webhook)
}

func (s *Store) openPrevious(v *secrets) (string, error) {
	return s.openOne(v.previous, previousColumn, v.webhook)
}

func (s *Store) openHeaders(v *secrets) ([]formsvc.Header, error) {
	text, err := s.openOne(v.headers, headersColumn, v.webhook)
	if text == "" || err != nil {
		return nil, err
	}
	var list []sealedHeader
	if json.Unmarshal([]byte(text), &list) != nil { // json's error would quote the text
		return nil, fmt.Errorf("bunstore: %s of webhook %s: not in the stored form", headersColumn, v.webhook)
	}
	headers := make([]formsvc.Header, len(list))
	for i, h := range list {
		headers[i] = formsvc.Header(h)
	}
	return headers, nil
}

// httpHeaders returns headers as an http.Header.
func httpHeaders(list []formsvc.Header) http.Header {
	if len(list) == 0 {
		return nil
	}
	headers := make(http.Header, len(list))
	for _, h := range list {
		headers.Add(h.Name, h.Value)
	}
	return headers
}

// usedKeys returns the ids of the keys that values are sealed under.
const usedKeys = "SELECT DISTINCT substr(x.value, 1, 12) FROM (SELECT secret AS value FROM formsvc_webhooks" +
	" UNION ALL SELECT previous_secret FROM formsvc_webhooks UNION ALL SELECT headers FROM formsvc_webhooks) AS x" +
	" WHERE x.value LIKE 's1.%'"

// MissingKeys implements storage.Database.
func (s *Store) MissingKeys(ctx context.Context) (missing []string, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	values, err := Strings(ctx, s.read, usedKeys)
	if err != nil {
		return nil, s.backend.Classify(err)
	}
	known := s.keys.IDs()
	for _, value := range values {
		if id, err := keyring.KeyID(value); err == nil && !slices.Contains(known, id) {
			missing = append(missing, id)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// CheckKeys implements storage.Database.
func (s *Store) CheckKeys(ctx context.Context) error {
	missing, err := s.MissingKeys(ctx)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: %s: the database has secrets sealed under it", keyring.ErrUnknownKey, strings.Join(missing, ", "))
	}
	return err
}
