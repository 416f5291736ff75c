package bunstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/uptrace/bun"

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

type secretKeyRow struct {
	bun.BaseModel `bun:"table:formsvc_secret_keys"`

	ID        string `bun:",pk"`
	CreatedAt int64
}

// register records, in the same transaction as the values, which keys they are sealed
// under. The lock on a key makes RotateSecrets wait before it forgets the key.
func (s *Store) register(ctx context.Context, c bun.IConn, v *secrets) error {
	known := make(map[string]bool, 1)
	for _, text := range v.texts() {
		id, err := keyring.KeyID(text)
		if err != nil || id == "" || known[id] { // a corrupt value stays as it is
			continue
		}
		known[id] = true
		q := s.build.NewSelect().Conn(c).Model((*secretKeyRow)(nil)).Column("id").Where("id = ?", id)
		if s.backend.ForUpdate() != "" {
			q = q.For("KEY SHARE")
		}
		var found string
		err = s.notFound(q.Scan(ctx, &found))
		if errors.Is(err, formsvc.ErrNotFound) {
			err = s.registerKey(ctx, c, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) registerKey(ctx context.Context, c bun.IConn, id string) error {
	_, err := s.build.NewInsert().Conn(c).Model(&secretKeyRow{ID: id, CreatedAt: micros(time.Now())}).
		On("CONFLICT (id) DO NOTHING").Exec(ctx)
	return err
}

// MissingKeys implements storage.Database.
func (s *Store) MissingKeys(ctx context.Context) ([]string, error) {
	missing, _, err := s.compareKeys(ctx)
	return missing, err
}

// compareKeys returns the missing keys, and whether the key that the keyring seals with
// must still be recorded.
func (s *Store) compareKeys(ctx context.Context) (missing []string, unnoted bool, err error) {
	if err := s.ready(ctx); err != nil {
		return nil, false, err
	}
	var registered []string
	err = s.build.NewSelect().Conn(s.read).Model((*secretKeyRow)(nil)).Column("id").Order("id").Scan(ctx, &registered)
	if err != nil {
		return nil, false, s.backend.Classify(err)
	}
	known, primary := s.keys.IDs(), s.keys.Primary()
	unnoted = primary != "" && !slices.Contains(registered, primary)
	return slices.DeleteFunc(registered, func(id string) bool { return slices.Contains(known, id) }), unnoted, nil
}

// CheckKeys implements storage.Database.
func (s *Store) CheckKeys(ctx context.Context) error {
	missing, unnoted, err := s.compareKeys(ctx)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s: the database has secrets sealed under it", keyring.ErrUnknownKey, strings.Join(missing, ", "))
	}
	if !unnoted {
		return nil
	}
	primary := s.keys.Primary()
	return s.unit(ctx, func(ctx context.Context, c bun.IConn) error { return s.registerKey(ctx, c, primary) })
}
