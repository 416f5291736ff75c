package webhooktest

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/formsvc/toolkit/webhook"
)

//go:embed vectors.json
var vectorsJSON []byte

// A Vector is an example of a request and what a receiver has to make of it.
type Vector struct {
	// Name says what it shows. It is unique.
	Name string
	// Secret is the key, byte for byte.
	Secret string
	// Body is the raw body.
	Body []byte
	// Signatures are the values of all signature headers of the request, as
	// the application sees them, that is after HTTP has removed the white space
	// around them.
	Signatures []string
	// Want is the error of package webhook with which the request is refused,
	// for [errors.Is]. It is nil if the request is accepted.
	Want error
}

// Vectors returns the examples of vectors.json, for a receiver with the limit
// [webhook.DefaultMaxBody]. Each call returns them anew. It fails only if the
// file that this package was built with is damaged.
func Vectors() ([]Vector, error) {
	var file struct {
		Limit   int64
		Vectors []struct {
			Name, Secret, Want string
			Body               []byte
			Fill               struct {
				Byte  byte
				Count int
			}
			Signatures []string
		}
	}
	if err := json.Unmarshal(vectorsJSON, &file); err != nil {
		return nil, fmt.Errorf("webhooktest: vectors.json: %w", err)
	}
	if file.Limit != webhook.DefaultMaxBody {
		return nil, fmt.Errorf("webhooktest: vectors.json is for a limit of %d bytes, not %d", file.Limit, webhook.DefaultMaxBody)
	}
	var all []Vector
	for _, v := range file.Vectors {
		want, err := wantError(v.Want)
		if err != nil {
			return nil, fmt.Errorf("webhooktest: vectors.json: %s: %w", v.Name, err)
		}
		if v.Fill.Count > 0 {
			v.Body = bytes.Repeat([]byte{v.Fill.Byte}, v.Fill.Count)
		}
		all = append(all, Vector{Name: v.Name, Secret: v.Secret, Body: v.Body, Signatures: v.Signatures, Want: want})
	}
	return all, nil
}

// wantError returns the error that the member want of a vector stands for.
func wantError(code string) (error, error) {
	switch code {
	case "ok":
		return nil, nil
	case "no_secret":
		return webhook.ErrNoSecret, nil
	case "too_large":
		return webhook.ErrTooLarge, nil
	case "no_signature":
		return webhook.ErrNoSignature, nil
	case "malformed_signature":
		return webhook.ErrMalformedSignature, nil
	case "mismatch":
		return webhook.ErrMismatch, nil
	case "too_old":
		return webhook.ErrTooOld, nil
	case "too_new":
		return webhook.ErrTooNew, nil
	default:
		return nil, fmt.Errorf("unknown outcome %q", code)
	}
}
