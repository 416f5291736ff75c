package webhooktest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

//go:embed vectors.json
var vectorsJSON []byte

// A Vector is an example of a request and its expected verification.
type Vector struct {
	Name    string   // what the example shows, unique within a function's result
	Secrets []string // the receiver's, byte for byte
	// Header are the headers that matter for the verification, as the application sees them:
	// without white space around their values.
	Header    http.Header
	Body      []byte        // the raw body
	Now       time.Time     // at the receiver; zero for [Vectors], which don't depend on it
	Tolerance time.Duration // the receiver's [webhook.Options.Tolerance]; 0 for [Vectors]
	Want      error         // the error of package webhook, for [errors.Is]; nil if the request is accepted
}

// Vectors returns the examples of [webhook.SignatureHeader] in vectors.json, for a receiver with
// the limit [webhook.DefaultMaxBody]. Each call returns new copies. It fails only if the embedded
// file is damaged.
func Vectors() ([]Vector, error) {
	return vectors(func(f *vectorFile) []vectorEntry { return f.Service })
}

// StandardVectors returns the examples of the headers of Standard Webhooks, whose
// [webhook.SignatureHeader] is correct, as Vectors does.
func StandardVectors() ([]Vector, error) {
	return vectors(func(f *vectorFile) []vectorEntry { return f.Standard })
}

// A vectorFile is the content of vectors.json; the package comment describes it.
type vectorFile struct {
	Format             int
	MaxBody, Tolerance int64
	Service, Standard  []vectorEntry
}

type vectorEntry struct {
	Name, Want string
	Secrets    []string
	Headers    map[string][]string
	Body       []byte
	Fill       struct {
		Byte  byte
		Count int
	}
	Now int64 // only of those for Standard Webhooks
}

func vectors(of func(*vectorFile) []vectorEntry) (all []Vector, err error) {
	var file vectorFile
	if err := json.Unmarshal(vectorsJSON, &file); err != nil {
		return nil, fmt.Errorf("webhooktest: vectors.json: %w", err)
	}
	if file.MaxBody != webhook.DefaultMaxBody {
		return nil, fmt.Errorf("webhooktest: vectors.json is for a limit of %d bytes, not %d", file.MaxBody, webhook.DefaultMaxBody)
	}
	for _, e := range of(&file) {
		want, ok := outcomes[e.Want]
		if !ok {
			return nil, fmt.Errorf("webhooktest: vectors.json: %s: unknown outcome %q", e.Name, e.Want)
		}
		v := Vector{Name: e.Name, Secrets: e.Secrets, Header: http.Header{}, Body: e.Body, Want: want}
		if e.Fill.Count > 0 {
			v.Body = bytes.Repeat([]byte{e.Fill.Byte}, e.Fill.Count)
		}
		for name, values := range e.Headers {
			for _, value := range values {
				v.Header.Add(name, value)
			}
		}
		if e.Now != 0 {
			v.Now, v.Tolerance = time.Unix(e.Now, 0).UTC(), time.Duration(file.Tolerance)*time.Second
		}
		all = append(all, v)
	}
	return all, nil
}

// outcomes has the errors for the member want of a vector.
var outcomes = map[string]error{
	"ok":                  nil,
	"no_secret":           webhook.ErrNoSecret,
	"too_large":           webhook.ErrTooLarge,
	"no_signature":        webhook.ErrNoSignature,
	"malformed_signature": webhook.ErrMalformedSignature,
	"mismatch":            webhook.ErrMismatch,
	"too_old":             webhook.ErrTooOld,
	"too_new":             webhook.ErrTooNew,
}
