package webhooktest

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/formsvc/toolkit/webhook"
)

//go:embed standard.json
var standardJSON []byte

// A StandardVector is an example of the headers of Standard Webhooks and what a
// receiver has to make of them. That the request also has to have the right
// [webhook.SignatureHeader] is left out.
type StandardVector struct {
	// Name says what it shows. It is unique.
	Name string
	// Secret is the secret, byte for byte. The key may be what it stands for:
	// see [webhook.SignStandard].
	Secret string
	// Body is the raw body.
	Body []byte
	// IDs, Timestamps and Signatures are the values of all headers of that
	// kind, as the application sees them.
	IDs, Timestamps, Signatures []string
	// Now is the time at the receiver.
	Now time.Time
	// Tolerance is the receiver's [webhook.Options.Tolerance].
	Tolerance time.Duration
	// Want is the error of package webhook with which the request is refused,
	// for [errors.Is]. It is nil if the request is accepted.
	Want error
}

// Header returns the headers of the request: those of the example and the right
// [webhook.SignatureHeader].
func (v StandardVector) Header() http.Header {
	h := http.Header{}
	h.Set(webhook.SignatureHeader, webhook.Sign([]byte(v.Secret), v.Body))
	for name, values := range map[string][]string{
		webhook.StandardIDHeader:        v.IDs,
		webhook.StandardTimestampHeader: v.Timestamps,
		webhook.StandardSignatureHeader: v.Signatures,
	} {
		for _, value := range values {
			h.Add(name, value)
		}
	}
	return h
}

// StandardVectors returns the examples of standard.json. Each call returns them
// anew. It fails only if the file that this package was built with is damaged.
func StandardVectors() ([]StandardVector, error) {
	var file struct {
		Tolerance int64
		Vectors   []struct {
			Name, Secret, Want       string
			Body                     []byte
			ID, Timestamp, Signature []string
			Now                      int64
		}
	}
	if err := json.Unmarshal(standardJSON, &file); err != nil {
		return nil, fmt.Errorf("webhooktest: standard.json: %w", err)
	}
	var all []StandardVector
	for _, v := range file.Vectors {
		want, err := wantError(v.Want)
		if err != nil {
			return nil, fmt.Errorf("webhooktest: standard.json: %s: %w", v.Name, err)
		}
		all = append(all, StandardVector{
			Name: v.Name, Secret: v.Secret, Body: v.Body, IDs: v.ID, Timestamps: v.Timestamp, Signatures: v.Signature,
			Now: time.Unix(v.Now, 0).UTC(), Tolerance: time.Duration(file.Tolerance) * time.Second, Want: want,
		})
	}
	return all, nil
}
